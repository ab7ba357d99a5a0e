# SPDX-License-Identifier: Apache-2.0
"""Make tests/text/data: a small byte-level BPE tokenizer and what Hugging Face tokenizers makes of
hard texts with it.

    python tools/goldens/tokenizer_vectors.py tests/text/data     (tokenizers 0.23.3)

tokenizer.json  some 560 merges trained on the text below, Qwen3.5's pattern, added tokens with
                every flag
vectors.json    encode: text, ids with all added tokens, ids with special tokens taken as text
                ignore_merges: the same tokenizer with ignore_merges true
                decode: random ids, text with and without special tokens
"""

import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, processors, trainers

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

TRAINING = """
The river ran under the old bridge, and the miller's daughter counted the boats that went by.
There were seven in the morning,
and in the evening there were none, for the wind had turned. "They're all gone," she said, "and
I'll have nobody to wave to." Her
father didn't answer; he was mending a wheel, and when he was mending he couldn't hear. So she
went down to the water by herself.
A heron stood there on one leg, as still as a post. It looked at her and she looked at it, and
neither of them moved for a while.
"You've lost a feather," said the girl. The heron said nothing. She picked the feather up, put it
behind her ear, and went home.
That night it rained, and the next day the boats came back: twelve of them, one after another,
with red sails and with brown.

    int main() {
        for (int i = 0; i < 10; ++i)
            printf("%d\\n", i * i);
        return 0;
    }

The price was 1,234.50 in 2023 and 1,310.75 in 2024. Ein schöner Tag, die Straße ist naß. Où est
la bibliothèque, s'il vous plaît?
El niño comió una manzana. Привет, мир! Как дела? Всё хорошо. 你好,世界。今天天气很好。 こんにちは世界。 안녕하세요 세계.
नमस्ते दुनिया। สวัสดีชาวโลก
Γειά σου Κόσμε. שלום עולם. مرحبا بالعالم. 😀 👍 👩‍👩‍👧 🇪🇺 and so on, and so on.
The heron was there again in the morning. There was another heron with it, and the other one had
all of its feathers.
"""

ADDED = [
    AddedToken("<|endoftext|>", special=True, normalized=False),
    AddedToken("<|im_start|>", special=True, normalized=False),
    AddedToken("<|im_end|>", special=True, normalized=False),
    AddedToken("<think>", special=False, normalized=False),
    AddedToken("</think>", special=False, normalized=False),
    AddedToken("<left>", special=False, normalized=False, lstrip=True),
    AddedToken("<right>", special=False, normalized=False, rstrip=True),
    AddedToken("<both>", special=True, normalized=False, lstrip=True, rstrip=True),
    AddedToken("<word>", special=False, normalized=False, single_word=True),
    AddedToken("todo", special=False, normalized=True, single_word=True),
    AddedToken("<a>", special=False, normalized=False),
    AddedToken("<a>b", special=False, normalized=False),
    AddedToken("<s>", special=False, normalized=False),
    AddedToken("<s>x", special=True, normalized=False),
    AddedToken("caf\u00e9", special=False, normalized=True),
    AddedToken("re\u0301sum", special=False, normalized=True),
    AddedToken("e\u0301clair", special=False, normalized=False),
    AddedToken(" sp ", special=False, normalized=True, lstrip=True),
]

TEXTS = [
    "", " ", "  ", "\n", "\r\n", "\t", "a", "Hello, world!",
    "The heron's feather isn't there; they're gone, I'll've seen.",
    "IT'S WE'RE I'M YOU'VE HE'LL SHE'D CAN'T 'Tis 'sup 'RE'ad 'vet 'Ll", "'s't'd'm're've'll''s",
    "x'\u017fy x'\u017f 'S \u017f's", "\u212a \u2126 \u00c5 \u212b \u017f",
    "don\u2019t \u2018quoted\u2019 \u201cdouble\u201d \u2026 \u2014 \u2013",
    "e\u0301 caf\u00e9 cafe\u0301 re\u0301sume\u0301 r\u00e9sum\u00e9 e\u0301clair \u00e9clair",
    "a\u0323\u0307 a\u0307\u0323 q\u0307\u0323\u0307 \u1e69 s\u0323\u0307 s\u0307\u0323",
    "\u0301leading mark", " \u0301 \u0301\u0301a", "!\u0301a \u0301! 1\u03012",
    "\u1112\u1161\u11ab\u1100\u1173\u11af \ud55c\uae00 \u1100\uac00\u11a8 \uac00\u11a8",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01 \u0e01\u0e34"
    "\u0e19\u0e02\u0e49\u0e32\u0e27\u0e41\u0e25\u0e49\u0e27",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e\u0964 \u0915"
    "\u094d\u0937 \u0958 \u0915\u093c",
    "\u09ac\u09be\u0982\u09b2\u09be \u09a1\u09bc \u09dc \u0b95\u0bca \u0b95\u0bc6\u0bbe",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0650\u0633\u0652\u0645\u0650 \u05e9\u05c1\u05b8"
    "\u05dc\u05d5\u05b9\u05dd \ufb2a",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\uff11\uff12\uff13 \u4e00\u4e8c\u4e09 \uf900 \uf9ff",
    "\u304c\u304b\u3099\u30ab\u3099 \u3070\u3071 \uff76\uff9e",
    "\u041f\u0440\u0438\u0432\u0435\u0442 \u0439\u0438\u0306 \u0401\u0415\u0308",
    "\U0001f600 \U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1ea\U0001f1fa \U0001f44d"
    "\U0001f3fd \u2764\ufe0f a\U0001f600b 1\U0001f6002",
    "1234567890 3.14 1,000,000 \u00bd \u00b2 \u2167 \u0663\u0664 \u0be7",
    "12\u0e51\u0e52 \U0001d7d8\U0001d7d9 \u2460\u2461 a1b2",
    "line\nline\r\nline\rline\n\n\nline  \n  line\n \n line", "a  b   c    d\t\te \t f\n\tg",
    "trailing   ", "trailing\n  ", "trailing \t\n", "   leading",
    "\u00a0nbsp\u00a0\u00a0x \u3000ideo\u3000 \u2003em \u2028ls\u2029ps \u0085nel\u0085",
    "\u200bzero\u200bwidth \ufeffbom \u00ad shy", "\x00\x01\x02 \x7f a\x00b \x1c\x1d\x1e\x1f",
    "!!! ?! ... --- ... \n\n...\n\n ... \r\n", "!?\r\n\r\nx !?\n x",
    "for (int i = 0; i < 10; ++i)\n\tprintf(\"%d\\n\", i);",
    "https://example.org/a_b?c=d&e=%20#f user@host _x_ __init__",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaaaaaaa", "therethereherontheherontherethethethethe", " " * 70 + "x", "\n" * 30 + "x",
    " \n" * 20, "-" * 80 + "\n" * 5,
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nHi<|im_end|>",
    "a<|im_end|>b <|im_end|> c<|im_end|>", "<|im_end|><|im_end|>  <|im_end|>", "<|im_end|",
    "<|im_<|im_end|>end|>", "x  <left>  y<left>z\n <left>", "x  <right>  y<right>z <right>\n",
    "x  <both>  y<both>z", "<right>  <left>", "<right> \n <both> \t <left> <right>",
    "<word> x<word> <word>y _<word> (<word>) \u0e33<word> <word>\u0301 <word>1 <word>\u00bd <w"
    "ord>\u24b6 <word>\u200d", "todo todos a todo. TODO (todo) \u00e9todo todo\u00e9 todo_ todo",
    "<a>b <a>c <a><a>b", "<s>x <s>y <s><s>x", "caf\u00e9 cafe\u0301s xcafe\u0301 caf\u00e9\u0301",
    "a  sp b sp  sp c", "e\u0301<think>\u0301 e</think>\u0301", "the zebra zebra", "zebra",
    " zebra\u0301", "\ufb01 \ufb03 \u1e9b\u0323 \u2460 \u33a5",
    "\U0001d15e \U0001d1be \u0344 \u0374 \u2adc \u1fef", "\u0f73\u0f71\u0f72 \u0f43",
    "\U00011099\U000110ba \U0001109a", "\U000e0001\U000f0000\U0010ffff\uffff\ufffe\ue000",
    "\u0378\u0380 \U0001fae8 \u1c89\u1c8a \U00016d40",
    "\u0c3c\u05bc\u0c3c e\u1abf\u0301 \U00011935\U00011930",
    "fin\u0303 a\u0327\u0301\u0328 \u1ea5\u0323",
]


def train(texts, vocab_size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
        ]
    )
    off = {"add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    tokenizer.decoder = decoders.ByteLevel(**off)
    tokenizer.post_processor = processors.ByteLevel(**off)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=1, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    # Tokens that no merges lead to: ids of ordinary text only with ignore_merges.
    file = json.loads(tokenizer.to_str())
    for token in ("\u0120zebra", "zebra"):
        file["model"]["vocab"].setdefault(token, len(file["model"]["vocab"]))
    tokenizer = Tokenizer.from_str(json.dumps(file))
    for token in ADDED:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return tokenizer


def encode_vectors(tokenizer):
    rows = []
    for text in TEXTS:
        tokenizer.encode_special_tokens = False
        ids = tokenizer.encode(text).ids
        tokenizer.encode_special_tokens = True
        rows.append({"text": text, "ids": ids, "plain": tokenizer.encode(text).ids})
    tokenizer.encode_special_tokens = False
    return rows


def ignore_merges_vectors(tokenizer):
    file = json.loads(tokenizer.to_str())
    file["model"]["ignore_merges"] = True
    other = Tokenizer.from_str(json.dumps(file))
    texts = [t for t in TEXTS if "zebra" in t or "heron" in t]
    return [{"text": text, "ids": other.encode(text).ids} for text in texts]


def decode_vectors(tokenizer):
    # The library writes an added token through the byte alphabet, so "caf\u00e9" would lose its
    # last letter; such tokens are left out here.
    draw = random.Random(20240607)
    added = {token.content for token in ADDED}
    vocab = tokenizer.get_vocab()
    usable = sorted(i for token, i in vocab.items() if token.isascii() or token not in added)
    bytes_only = [i for i in usable if len(tokenizer.id_to_token(i)) == 1]
    rows = []
    for n in range(60):
        pool = bytes_only if n % 2 else usable
        ids = [draw.choice(pool) for _ in range(draw.randint(1, 24))]
        skip, everything = tokenizer.decode(ids, True), tokenizer.decode(ids, False)
        rows.append({"ids": ids, "skip": skip, "all": everything})
    return rows


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = train([TRAINING], 850)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
    vectors = {
        "encode": encode_vectors(tokenizer),
        "ignore_merges": ignore_merges_vectors(tokenizer),
        "decode": decode_vectors(tokenizer),
    }
    parts = []
    for name, rows in vectors.items():
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        parts.append(f'"{name}": [\n{lines}]')
    text = ",\n".join(parts)
    (folder / "vectors.json").write_text("{" + text + "}\n", encoding="ascii")


if __name__ == "__main__":
    main()
