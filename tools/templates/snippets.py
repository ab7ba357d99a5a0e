# SPDX-License-Identifier: Apache-2.0
"""Small templates that together try every construct, and what varies in them.

A snippet that jinja2 refuses or fails on is as good as one that prints.
"""

VARIABLES = {
    "name": "Ada",
    "empty": "",
    "n": 7,
    "neg": -3,
    "x": 2.5,
    "big": 18446744073709551615,
    "yes": True,
    "no": False,
    "nil": None,
    "words": ["pear", "Apple", "fig", "apple"],
    "nums": [3, 1, 2, 3],
    "nested": [1, [2, [3, "x"]], {"k": [None, True]}],
    "person": {"name": "Bo", "age": 31, "items": "shadow", "tags": ["a", "b"]},
    "people": [
        {"name": "Cy", "age": 40, "city": "Ulm", "on": True},
        {"name": "Di", "age": 25, "city": "ulm", "on": False},
        {"name": "al", "age": 40, "city": "Bonn"},
    ],
    "text": "  two\n lines\there  ",
    "uni": "Stra\u00dfe \u00e9\u4e2d\u6587 \U0001f600 \u03a3\u0391\u03a3",
    "html": "<b>&'\"</b>",
    "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}, {"v": 5, "c": []}],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi <|im_end|>"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello"},
    ],
}

# Operands of the products below, as they stand in a template.
OPERANDS = [
    "none", "true", "0", "3", "-7", "2.5", "''", "'abc'", "[]", "[1, 'b']", "(1, 2)", "{}",
    "{'a': 1}", "missing", "range(3)", "'%s!'",
]
BINARY = [
    "{{ A + B }}", "{{ A - B }}", "{{ A * B }}", "{{ A / B }}", "{{ A // B }}", "{{ A % B }}",
    "{{ A ~ B }}", "{{ A == B }}", "{{ A < B }}", "{{ A >= B }}", "{{ A in B }}",
    "{{ A and B }}", "{{ A or B }}", "{{ A[B] }}", "{{ A is in B }}",
]
UNARY = [
    "{{ A }}", "{{ -A }}", "{{ +A }}", "{{ not A }}", "{{ 1 if A else 0 }}", "{{ [A, (A,)] }}",
    "{{ A is defined }}", "{{ A is none }}", "{{ A is string }}", "{{ A is number }}",
    "{{ A is integer }}", "{{ A is float }}", "{{ A is boolean }}", "{{ A is true }}",
    "{{ A is false }}", "{{ A is mapping }}", "{{ A is iterable }}", "{{ A is sequence }}",
    "{{ A is callable }}", "{{ A is odd }}", "{{ A is even }}", "{{ A is divisibleby 3 }}",
    "{{ A is lower }}", "{{ A is upper }}", "{{ A is sameas none }}", "{{ A is sameas true }}",
    "{{ A is escaped }}", "{{ A is filter }}", "{{ A is test }}", "{{ A is undefined }}",
    "{{ A | length }}", "{{ A | string }}", "{{ A | list }}", "{{ A | first }}", "{{ A | last }}",
    "{{ A | join('-') }}", "{{ A | upper }}", "{{ A | lower }}", "{{ A | trim }}",
    "{{ A | title }}", "{{ A | capitalize }}", "{{ A | tojson }}", "{{ A | int }}",
    "{{ A | float }}", "{{ A | abs }}", "{{ A | round }}", "{{ A | default('d') }}",
    "{{ A | default('d', true) }}", "{{ A | sort }}", "{{ A | unique | list }}",
    "{{ A | reverse | list }}", "{{ A | sum }}", "{{ A | min }}", "{{ A | max }}",
    "{{ A | items | list }}", "{{ A | dictsort }}", "{{ A | batch(2) | list }}",
    "{{ A | slice(2) | list }}", "{{ A | map('string') | list }}", "{{ A | select | list }}",
    "{{ A | replace('a', 'x') }}", "{{ A | indent }}", "{{ A | wordcount }}", "{{ A | e }}",
    "{{ A | center(9) }}", "{{ A | truncate(3, true, '') }}", "{{ A | safe }}",
    "{{ '%s|%r' % (A, A) }}", "{{ '{}'.format(A) }}", "{{ A.a }}", "{{ A.upper() }}",
    "{{ A[0] }}", "{{ A[-1] }}", "{{ A['a'] }}", "{{ (A if yes)[:1] }}", "{{ (A if yes)[::-1] }}", "{{ A() }}",
    "{% for i in A %}{{ i }},{% else %}none{% endfor %}",
    "{% set a, b = A %}{{ a }}{{ b }}", "{{ namespace(A) }}", "{{ dict(A) }}",
    "{{ {A: 1} }}", "{{ A.items() | list }}", "{{ [3, A, 1] | sort }}", "{{ 5 ** A }}",
]

EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
2 ** 3 ** 2
-2 ** 2
2 ** -1
2 ** 0.5
0 ** 0
7 // 2
-7 // 2
7 // -2
-7 % 3
7 % -3
-7.5 // 2
-7.5 % 2
7.5 % -2
0.1 + 0.2
1 / 3
6 / 3
1e3
1.5e-7
1e16
1e15
123456789.125
1_000 + 0x1F + 0b101 + 0o17
5.0 // 0.3
10 ** 20
-5 // 3 * 3 + -5 % 3
9007199254740993
big
big + 1
'a' 'b' "c"
'a' ~ 1 ~ none ~ true ~ 1.5
'ab' * 3
3 * 'ab'
'ab' * -1
[1] * 3
[1, 2] + [3]
(1,) + (2,)
'it''s'
'tab\there\nline \\ \' \" \x41 \u00e9 \101'
"dq 'in' \"it\""
'\d stays \  and this'
'emoji \U0001F600'
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2 != 1
1 == 1.0
1 == true
'1' == 1
'a' < 'b'
'a' < 'B'
[1, 2] < [1, 3]
[1, 2] == (1, 2)
{'a': 1} == {'a': 1.0}
none == false
missing == missing
missing == none
'b' in 'abc'
'' in 'abc'
2 in nums
'name' in person
'x' not in person
not 1 in [1]
not missing
1 in [true]
[1] in [[1]]
none in [none]
3 in range(4)
'a' if yes
'a' if no
'a' if no else 'b'
'a' if no else 'b' if no else 'c'
(1, 2)
(1,)
()
[1, 'two', 3.0, none, true, [], {}, ()]
{'a': 1, "b'": 'it''s', 3: none}
{'a': 1, 'a': 2, 'b': 3}
{1: 'x', true: 'y'}
[1, 2, 3,]
"it's"
["it's", 'say "x"', 'both \' and "']
['new\nline', '\t', '\x00\x7f', '\u200b', '\u00e9', '\\']
nested
name[0]
name[-1]
name[5]
name[0:2]
name[::-1]
name[::2]
name[-2:]
name[1:100]
name[5:1]
name[2:0:-1]
nums[1:]
nums[:-1]
nums[::-1]
nums[::-2]
nums[5:]
nums[3:0:-1]
(1, 2, 3)[1:]
nums['0']
nums.0
nested.1.1.0
uni[0:9]
uni[7]
uni[::-1]
uni | length
name.nothing
name.nothing.more
nothing.more
person.name
person['name']
person.items
person['items']
person.items()
person.keys()
person.values()
person.items() | list
person.keys() | list
person.get('age')
person.get('nope')
person.get('nope', 5)
person.nope
person['nope']
person[0]
person['tags'][0]
person.tags.1
person.copy()
person.pop
person.pop('name')
person.update({'a': 1})
person.update is defined
nums.append(4)
nums.index(2)
nums.index(9)
nums.count(3)
nums.copy()
(1, 1, 2).count(1)
(1, 1, 2).index(2)
name.upper()
name.lower()
'hello wORLD foo-bar'.title()
'hello wORLD'.capitalize()
'Hello'.swapcase()
uni.upper()
uni.lower()
uni.title()
uni.capitalize()
uni.swapcase()
text.strip()
text.lstrip()
text.rstrip()
'xxaxx'.strip('x')
'xyaxy'.lstrip('yx')
'xyaxy'.rstrip('yx')
'xax'.strip('')
'xax'.strip(none)
'\u00a0 a \u3000'.strip()
'a b  c '.split()
'a b  c '.split(' ')
'a,b,c'.split(',', 1)
'a,b,c'.split(',', maxsplit=1)
'a b c d'.split(none, 2)
'  a b  c '.split(maxsplit=1)
'a,b,c'.rsplit(',', 1)
' a b  c '.rsplit(none, 1)
' a b  c '.rsplit()
''.split()
''.split(',')
'abc'.split('')
'a--b--c'.split('--')
'aXbXc'.split('X')[-1]
'one\ntwo\r\nthree\n\nfour\r'.splitlines()
'one\ntwo\n'.splitlines(true)
'a\x0bb\x0cc\x1cd\x85e\u2028f'.splitlines()
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.startswith('b', 1)
'abc'.startswith('c', 1, 2)
'abc'.endswith('bc')
'abc'.endswith(('x', 'c'))
'abc'.startswith(1)
'abc'.startswith('')
'abcabc'.find('c')
'abcabc'.find('c', 3)
'abcabc'.find('c', -2)
'abcabc'.find('z')
'abcabc'.rfind('b')
'abcabc'.index('b')
'abcabc'.index('z')
'abcabc'.rindex('a')
uni.find('\u4e2d')
'abcabc'.count('bc')
'aaaa'.count('aa')
'abc'.count('')
'abcabc'.count('a', 1)
'aaa'.replace('a', 'b')
'aaa'.replace('a', 'b', 2)
'aaa'.replace('a', '')
'abc'.replace('', '-')
'abc'.replace('', '-', 2)
'abc'.replace('b')
', '.join(words)
', '.join(nums)
''.join([])
'-'.join('abc')
'-'.join(person)
'abc'.center(9)
'abc'.center(8, '*')
'abcd'.center(9, '*')
'abc'.ljust(6) ~ '|'
'abc'.rjust(6, '.')
'-42'.zfill(6)
'42'.zfill(1)
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
'abc'.partition('=')
'abc'.rpartition('=')
'prefix-x'.removeprefix('prefix-')
'x-suffix'.removesuffix('-suffix')
'x'.removeprefix('y')
'abc'.isalpha()
'ab1'.isalnum()
'123'.isdigit()
'12a'.isdigit()
'\u00b2'.isdigit()
'\u00b2'.isdecimal()
''.isdigit()
' \t'.isspace()
'abc'.islower()
'aBc'.islower()
'ABC'.isupper()
'A1'.isupper()
'1'.isupper()
'Hello World'.istitle()
'Hello world'.istitle()
'abc'.isascii()
uni.isascii()
'abc'.isprintable()
'a\n'.isprintable()
'abc'.nosuch()
'{} {}'.format(1, 'a')
'{1} {0}'.format(1, 'a')
'{a}-{b}'.format(a=1, b=[2])
'{0.name} {0[age]}'.format(person)
'{:>8}|{:<8}|{:^8}|'.format('a', 'b', 'c')
'{:*^9}'.format('mid')
'{:08.3f}'.format(3.14159)
'{:+d} {: d} {:d}'.format(3, 4, -5)
'{:x} {:X} {:o} {:b} {:#x}'.format(255, 255, 8, 5, 255)
'{:,}'.format(1234567)
'{:_}'.format(1234567)
'{:,.2f}'.format(1234567.891)
'{:.3}'.format(123.456)
'{:.3}'.format(1234.5)
'{:.2}'.format('abcdef')
'{:.1%}'.format(0.256)
'{:e} {:E}'.format(12345.678, 0.00012)
'{:g} {:g}'.format(1e10, 0.5)
'{:5}|{:<5}|'.format(42, 42)
'{:05d}'.format(-42)
'{!r}'.format('a')
'{{}} {}'.format(1)
'{} {0}'.format(1)
'{}'.format()
'{nope}'.format(a=1)
'{:d}'.format('a')
'{:>5}'.format(true)
'{}'.format(none)
'%s and %s' % ('a', 1)
'%d %i' % (3.9, true)
'%5d|%-5d|%05d' % (42, 42, 42)
'%.2f %8.3f %+.1f' % (3.14159, 2.71828, 1)
'%x %X %o' % (255, 255, 8)
'%e %g' % (12345.678, 0.0001)
'%r %s' % ('a', 'a')
'%c%c' % ('a', 98)
'%%' % ()
'%(a)s %(b)d' % {'a': 1, 'b': 2}
'%s' % [1]
'%s' % 'x'
'%10s|%-10s|' % ('a', 'b')
'%.2s' % 'abcdef'
'%s' % ()
'%s' % (1, 2)
'%d' % 'a'
'abc' % 1
'50%' % 1
'%5s' % uni
range(3)
range(1, 10, 3) | list
range(5, 0, -2) | list
range(0) | list
range(3)[1]
range(10)[2:5]
range(10)[::-1] | list
range(0, 10, 0)
range(2.5)
range(100001)
range(3) | length
dict(a=1, b=2)
dict([('a', 1), ['b', 2]])
dict({'a': 1}, b=2)
dict([1])
namespace(a=1)
namespace(a=1).a
namespace(a=1)['a']
namespace(a=1).b
namespace({'k': 'v'}, z=1)
cycler('a', 'b').next()
cycler()
joiner()
joiner('|')()
raise_exception('own words')
raise_exception('own ' ~ name)
strftime_now('%Y-%m-%d')
name | upper | lower | title
'foo bar-baz (qux)' | title
"it's a [dog] <cat>" | title
uni | title
uni | capitalize
text | trim
'xxaxx' | trim('x')
name | default('x')
missing | default('x')
missing | d
empty | default('x')
empty | default('x', true)
empty | default('x', boolean=true)
missing | default(default_value='y')
nil | default('x')
words | join
words | join(', ')
nums | join('-')
people | join(', ', attribute='name')
[none, true, 1.5] | join('|')
words | first
words | last
[] | first
[] | last
[] | first is defined
'abc' | first
'abc' | last
person | first
person | last
words | length
words | count
'abc' | list
person | list
words | reverse | list
words | reverse
'abc' | reverse
person | reverse | list
words | sort
words | sort(case_sensitive=true)
words | sort(true)
words | sort(reverse=true)
nums | sort
nums | sort(reverse=true)
people | sort(attribute='age') | map(attribute='name') | list
people | sort(attribute='age,name') | map(attribute='name') | list
people | sort(attribute='name', case_sensitive=true) | map(attribute='name') | list
people | sort(attribute='age', reverse=true) | map(attribute='name') | list
[1, 'a'] | sort
[[2, 1], [1, 5], [1, 2]] | sort
words | unique | list
words | unique(case_sensitive=true) | list
nums | unique | list
people | unique(attribute='city') | map(attribute='name') | list
[1, true, 1.0, '1'] | unique | list
[[1], [1]] | unique | list
nums | min
nums | max
words | min
words | max(case_sensitive=true)
people | max(attribute='age')
people | min(attribute='name')
[] | min
nums | sum
people | sum(attribute='age')
people | sum(attribute='age', start=100)
[[1], [2]] | sum(start=[])
['a'] | sum
nums | batch(2) | list
nums | batch(3, 'x') | list
nums | batch(0) | list
nums | slice(3) | list
nums | slice(3, 'x') | list
nums | slice(0) | list
people | groupby('city')
people | groupby('city', case_sensitive=true) | map(attribute='grouper') | list
people | groupby('age') | map(attribute='list') | map('length') | list
people | groupby('on', default=false) | length
person | dictsort
{'b': 1, 'A': 3, 'c': 2} | dictsort
{'b': 1, 'A': 3, 'c': 2} | dictsort(true)
{'b': 1, 'A': 3, 'c': 2} | dictsort(by='value')
{'b': 1, 'A': 3, 'c': 2} | dictsort(reverse=true)
{'b': 1} | dictsort(by='x')
person | items | list
missing | items | list
words | map('upper') | list
words | map('replace', 'p', 'P') | list
people | map(attribute='name') | list
people | map(attribute='on') | list
people | map(attribute='on', default='?') | list
people | map(attribute='nope.more') | list
[[1, 2], [3]] | map(attribute=0) | list
[[1, 2], [3]] | map('first') | list
[{'a': {'b': 1}}] | map(attribute='a.b') | list
words | map('nosuch') | list
words | map | list
words | map('length')
nums | select('odd') | list
nums | select('>', 1) | list
nums | select('greaterthan', 1) | list
nums | reject('odd') | list
nums | select('divisibleby', 3) | list
[0, 1, '', 'a', none] | select | list
[0, 1, '', 'a', none] | reject | list
nums | select('in', [1, 2]) | list
nums | select('nosuch') | list
people | selectattr('on') | map(attribute='name') | list
people | rejectattr('on') | map(attribute='name') | list
people | selectattr('age', 'equalto', 40) | map(attribute='name') | list
people | selectattr('age', '==', 40) | map(attribute='name') | list
people | selectattr('on', 'defined') | map(attribute='name') | list
people | rejectattr('city', 'in', ['Ulm']) | map(attribute='name') | list
people | selectattr('age', 'lt', 30) | list | length
messages | selectattr('role', 'equalto', 'user') | list | last
(messages | selectattr('role', 'equalto', 'user') | list)[0].content
messages | map(attribute='role') | join(',')
messages | selectattr('role', 'equalto', 'tool') | list | length > 0
name | replace('A', 'a')
'aaaa' | replace('a', 'b', 2)
nums | replace(1, 'x')
'a\nb\n\nc' | indent
'a\nb\n\nc' | indent(2)
'a\nb\n\nc' | indent(2, true)
'a\nb\n\nc' | indent(2, blank=true)
'a\nb\n\nc' | indent('> ', first=true, blank=true)
'a\nb' | indent(width=3)
'a\n' | indent(2) ~ '|'
'' | indent ~ '|'
5 | indent
'foo bar baz qux' | truncate(9)
'foo bar baz qux' | truncate(9, true)
'foo bar baz qux' | truncate(11)
'foo bar baz qux' | truncate(11, false, '...', 0)
'foo bar baz qux' | truncate(2)
'foobarbazqux' | truncate(6, end='~', leeway=0)
'abc' | center(9) ~ '|'
'one two, three-four _x' | wordcount
uni | wordcount
'%s-%s' | format('a', 1)
'%(a)s' | format(a=5)
'%s' | format('a', b=1)
html | e
html | escape
html | e | e
html | forceescape | forceescape
html | safe
(html | safe) + '<i>'
'<i>' + (html | safe)
(html | safe) ~ '<i>'
[html | safe]
(html | safe).upper() + '&'
('<%s>' | safe) % '<'
('<{}>' | safe).format('<')
('-' | safe).join(['<', '>'])
('a,<' | safe).split(',')
('ab' | safe)[0] + '<'
('a<' | safe) | replace('<', '>') + '<'
('<' | safe) * 2 + '<'
'x<y' | e is escaped
person | tojson
person | tojson(indent=2)
person | tojson(sort_keys=true)
person | tojson(indent=1, sort_keys=true)
nested | tojson
nested | tojson(indent=4)
nested | tojson(separators=(',', ':'))
nested | tojson(indent=2, separators=(',', ' = '))
uni | tojson
uni | tojson(ensure_ascii=true)
uni | tojson(true)
'q" \\ \n\r\t\b\f\x00\x1f\x7f/' | tojson
'\x7f' | tojson(ensure_ascii=true)
[] | tojson(indent=2)
{} | tojson(indent=2)
[[], {}] | tojson(indent=2)
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
{(1, 2): 3} | tojson
(1, 2) | tojson
1e100 | tojson
missing | tojson
[missing] | tojson
range(3) | tojson
html | tojson | safe
'a' | tojson(indent='--')
[1, [2]] | tojson(indent='--')
[1] | tojson(indent=0)
'42' | int
' 42 ' | int
'4_2' | int
'-42' | int
'42.9' | int
'abc' | int
'abc' | int(-1)
'abc' | int(default=none)
'0x1f' | int(0, 16)
'1f' | int(base=16)
'101' | int(base=2)
'0b11' | int(base=0)
'08' | int(base=0)
3.99 | int
-3.99 | int
none | int
'1e3' | float
'1e3' | int
' 2.5 ' | float
'inf' | float
'nan' | float
'-Infinity' | float
'x' | float(1.5)
'1_0.5' | float
'.5' | float
'5.' | float
'.' | float
-5 | abs
-5.5 | abs
42.55 | round
42.55 | round(1)
42.5 | round
43.5 | round
2.675 | round(2)
42.55 | round(1, 'floor')
42.51 | round(1, 'ceil')
42 | round
1234 | round(-2)
1250 | round(-2)
1350 | round(-2)
42.55 | round(method='nope')
7 | round(1, 'floor')
1.0 | string
1e20 | string
1e22 | string
-0.0
1.0 * 3
3.0 == 3
100000.0 * 10
12345678901234567.0
0.1 * 3
1e-5
0.0001
5 | string | length
true + true
true * 3.5
-true
yes + 1
n is odd
n is even
n is divisibleby 7
n is divisibleby(2)
n is not odd
not n is odd
n is eq 7
n is ne 7
n is gt 3
n is lt(3)
n is ge 7
n is le 6
n is equalto 7
n is sameas n | length
nil is sameas none
nil is none
'upper' is filter
'nosuch' is filter
'odd' is test
'nosuch' is test
n is in [7, 8]
'a' is in 'abc'
n is defined and n is number
n is string or n is integer
name is string if yes else 'z'
missing is defined
missing.foo is defined
person.foo is defined
person.foo.bar is defined
person.foo is none
words is sequence and words is not string
person is mapping
range is callable
namespace() is mapping
loop is defined
caller is defined
words.0.upper()
(words | map('upper') | list)[0]
words | map('upper') | first
words | map('length') | sum
(1 if yes else 2) + 3
[1, 2, 3][1:][0]
{'a': [1, {'b': 'c'}]}['a'][1].b
'abc'.upper().lower().title()
people[0]['name'] ~ people[-1].name
messages[0].role == 'system' and messages[1:] | length == 2
messages[2].content.split('</think>')[-1].lstrip('\n')
messages[2].content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n')
'</think>' in messages[2].content
messages[::-1][0].role
messages[-1:][0].role
messages | length - 1
(messages | length) - 1
loop
-n | abs
-n ** 2
not n == 7
1 + 1 ~ 2
1 ~ 1 + 2
2 * 3 ~ 4
'a' in 'abc' == true
1 if 0 else 2 if 0 else 3
[x for x in y]
a b
1 +
)
(1
[1
{'a'}
{'a': }
1 +* 2
a.
a.1.b
a..b
'unclosed
@
a ! b
a && b
x | nosuch
x is nosuch
x | 5
x is
x is defined is none
f(a=1, 2)
f(**a, b)
f(a=1, a=2)
f(*a, *b)
range(*[1, 4]) | list
dict(**{'a': 1})
range(start=1)
dict(a=1, **{'a': 2})
person | length
name | length(1)
name | upper(1)
words | join(sep=',')
words | sort(nope=1)
nums | batch
'a' | replace('a')
'abc'.upper(1)
'abc'.split(1)
'abc'.split(',', 'x')
'abc'.find(1)
name()
n()
n.x.y
none.x
none['x']
none[0]
none.x.y
person.name.upper
true.nope is defined
[].x
[1, 2]['a']
{'a': 1}.a
{'get': 1}.get
{'get': 1}['get']
"x" "y" | length
1 2
1,
1, 2
()[0]
'x'[0][0][0]
nums[none]
nums[1.0]
nums[true]
nums[:'a']
nums[missing:]
nums[::0]
person[[1]]
{[1]: 2}
{}[{}]
[] in {}
5 in 5
'a' in none
5 in 'abc'
1 < 'a'
none < 1
missing < 1
missing + 1
1 + missing
-missing
missing ~ 'x'
missing | upper
missing | length
missing | list
missing | join
missing | first
missing | last
missing | sort
missing | int
missing | round
missing | abs
missing | trim
missing | replace('a', 'b')
missing | default(missing) | default('z')
missing[0]
missing.x
missing()
'%d' % missing
1 // 0
1 % 0
1.0 / 0
0.0 % 0
0 ** -1
'a' - 'b'
[] - []
{} + {}
none + none
'a' + 1
1 + 'a'
'a' * 'b'
'a' * 2.0
1.5 // 'a'
2 ** 100
'caf\u00e9' | upper
'\u00df' | upper
'\ufb01x' | capitalize
'\ufb01x'.title()
'\u01c6'.title()
'\u0130' | lower
'\u03a3' | lower
'\u0391\u03a3\u0391' | lower
'\u0391\u03a3.' | lower
'\u0391\u03a3.\u0391' | lower
"a\
b"
'\q\
x'
'\ud800'
'\xZZ'
name[1]
'a\u00e9\é'
""".strip("\n").split("\n")

STATEMENTS = [
    # if
    "{% if n %}yes{% endif %}",
    "{% if no %}a{% elif n == 7 %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif no %}b{% elif nil %}c{% else %}d{% endif %}",
    "{% if n > 5 and name == 'Ada' %}ok{% endif %}",
    "{% if not missing %}ok{% endif %}",
    "{% if 1, 2 %}t{% endif %}",
    "{% if n: %}colon{% endif %}",
    "{% if %}x{% endif %}",
    "{% if n %}x",
    "{% if n %}x{% endfor %}",
    "{% if n %}x{% else %}y{% else %}z{% endif %}",
    "{% elif n %}",
    "{% endif %}",
    "{% if no %}{{ 1/0 }}{% endif %}fine",
    "{% if no %}{{ x | nosuch }}{% endif %}fine",
    "{% if yes %}{{ x | nosuch }}{% endif %}",
    "{% if no %}{{ x is nosuch }}{% endif %}fine",
    "{{ (x | nosuch) if no else 'fine' }}",
    "{% if 'nosuch' is filter %}{{ x | nosuch }}{% else %}without{% endif %}",
    "{% if no %}{% for i in nums %}{{ i | nosuch }}{% endfor %}{% endif %}",
    # for
    "{% for w in words %}{{ w }},{% endfor %}",
    "{% for w in words %}{{ loop.index }}/{{ loop.length }}:{{ w }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for i in nums %}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }};{% endfor %}",
    "{% for i in nums %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }};{% endfor %}",
    "{% for i in nums %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for i in nums %}{{ loop.cycle('a', 'b', 'c') }}{% endfor %}",
    "{% for i in nums %}{{ loop.cycle() }}{% endfor %}",
    "{% for i in [1,1,2,2,1] %}{{ loop.changed(i) }} {% endfor %}",
    "{% for i in nums %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for i in [] %}x{% else %}none{% endfor %}",
    "{% for i in missing %}x{% else %}none{% endfor %}",
    "{% for i in none %}x{% endfor %}",
    "{% for i in 5 %}x{% endfor %}",
    "{% for i in nums %}{% continue %}{% else %}else{% endfor %}",
    "{% for i in nums %}{% if i == 1 %}{% break %}{% endif %}{{ i }}{% else %}else{% endfor %}",
    "{% for i in nums %}{% break %}{% else %}else{% endfor %}",
    "{% for i in nums %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in nums if i > 1 %}{{ i }}{{ loop.index }}{{ loop.last }}{% endfor %}",
    "{% for i in nums if i > 1 %}{{ loop.length }}{% endfor %}",
    "{% for i in nums if i > 100 %}x{% else %}none{% endfor %}",
    "{% for i in nums if loop.index > 1 %}x{% endfor %}",
    "{% set ns = namespace(k=0) %}{% for i in nums if i > ns.k %}{% set ns.k = i %}{{ i }}{% endfor %}",
    "{% for k, v in person.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in person | items %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in person | dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in person %}{{ k }}{% endfor %}",
    "{% for c in 'h\u00e9\u4e2d' %}[{{ c }}]{% endfor %}",
    "{% for a, b in [(1, 2), [3, 4], 'xy'] %}{{ a }}{{ b }};{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for (a, b) in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, in [(1,)] %}{{ a }}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}x{% endfor %}",
    "{% for a, b in [(1,)] %}x{% endfor %}",
    "{% for a, b in [1] %}x{% endfor %}",
    "{% for i in nums %}{% for j in words %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for i in nums %}{% set outer = loop %}{% for j in [1, 2] %}{{ outer.index }}.{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for i in range(3) recursive %}{{ i }}{% endfor %}",
    "{% for t in tree recursive %}{{ t.v }}@{{ loop.depth }}({{ loop(t.c) }}){% endfor %}",
    "{% for t in tree recursive %}{{ t.v }}{% if t.c %}[{{ loop(t.c) }}]{% else %}.{% endif %}{% endfor %}",
    "{% for t in tree %}{{ loop(t.c) }}{% endfor %}",
    "{% for i in nums %}{{ loop }}{% break %}{% endfor %}",
    "{% for i in nums %}{{ loop.nosuch }}{% endfor %}",
    "{% for i in nums | map('string') %}{{ loop.length }}{{ loop.last }}{{ i }}{% endfor %}",
    "{% for i in nums | map('string') %}{{ loop.nextitem }}{{ loop.length }}{{ i }}{% endfor %}",
    "{% for i in nums | batch(2) %}{{ i }}{% endfor %}",
    "{% for i in nums | reverse %}{{ i }}{% endfor %}",
    "{% for m in messages[::-1] %}{{ m.role }}{{ loop.index0 }}{% endfor %}",
    "{% for g in people | groupby('city') %}{{ g.grouper }}:{% for p in g.list %}{{ p.name }}{% endfor %};{% endfor %}",
    "{% for c, ps in people | groupby('city') %}{{ c }}{{ ps | length }};{% endfor %}",
    "{% for loop in nums %}x{% endfor %}",
    "{% for i in nums %}{% set loop = 1 %}{% endfor %}",
    "{% for true in nums %}x{% endfor %}",
    "{% for 1 in nums %}x{% endfor %}",
    "{% for i nums %}x{% endfor %}",
    "{% for in nums %}x{% endfor %}",
    "{% for i in %}x{% endfor %}",
    "{% for i in nums %}x",
    "{% for i in nums %}x{% else %}y",
    "{% break %}",
    "{% continue %}",
    "{% for i in nums %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% for i in nums %}{{ i }}{% set s %}a{% break %}{% endset %}{% endfor %}end",
    "{% for i in nums %}{% filter upper %}a{% continue %}{% endfilter %}{% endfor %}end",
    "{% for i in nums %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
    "{% for i in [] %}{% else %}{% break %}{% endfor %}",
    "{% for j in [1, 2] %}{{ j }}{% for i in [] %}{% else %}{% break %}{% endfor %}x{% endfor %}",
    # set and scope
    "{% set v = 1 %}{{ v }}",
    "{% set v = 1, 2 %}{{ v }}",
    "{% set a, b = 1, 2 %}{{ b }}{{ a }}",
    "{% set a, b = b, a %}{{ a }}",
    "{% set (a, b) = 'xy' %}{{ a }}{{ b }}",
    "{% set a = 1 %}{% set a = a + 1 %}{{ a }}",
    "{% set v %}block {{ n }}{% endset %}[{{ v }}]",
    "{% set v | upper %}block {{ n }}{% endset %}[{{ v }}]",
    "{% set v | replace('b', 'c') | upper | trim %} abc {% endset %}[{{ v }}]",
    "{% set v %}{% set inner = 1 %}{{ inner }}{% endset %}{{ v }}{{ inner }}",
    "{% set v = 0 %}{% for i in nums %}{% set v = v + i %}{{ v }},{% endfor %}{{ v }}",
    "{% for i in nums %}{{ v }}{% set v = i %}{{ v }},{% endfor %}{{ v }}",
    "{% set ns = namespace(v=0) %}{% for i in nums %}{% set ns.v = ns.v + i %}{% endfor %}{{ ns.v }}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{% set ns.b = 'x' %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns }}",
    "{% set ns = namespace(found=false) %}{% for m in messages %}{% if m.role == 'user' and not ns.found %}{% set ns.found = true %}{{ loop.index0 }}{% endif %}{% endfor %}{{ ns.found }}",
    "{% set ns = namespace() %}{% set ns.a %}text{{ n }}{% endset %}{{ ns.a }}",
    "{% set person.age = 5 %}",
    "{% set missing.a = 5 %}",
    "{% set v = 1 %}{% if yes %}{% set v = 2 %}{% endif %}{{ v }}",
    "{% if no %}{% set name = 'other' %}{% endif %}{{ name }}",
    "{% if yes %}{% set name = 'other' %}{% endif %}{{ name }}",
    "{% if no %}{% set q = 1 %}{% else %}{{ q }}{% endif %}{{ q }}",
    "{% if no %}{% set q = 1 %}{% elif no %}{% set q = 2 %}{% else %}{% set q = 3 %}{% endif %}{{ q }}",
    "{% for i in [1, 2] %}{% if i == 2 %}{% set name = 'x' %}{% endif %}{{ name }}{% endfor %}{{ name }}",
    "{% for i in [1, 2] %}{{ name }}{% set name = i %}{{ name }}{% endfor %}{{ name }}",
    "{% for i in [1, 2] %}{% for j in [1, 2] %}{% set k = j %}{% endfor %}{{ k }}{% endfor %}",
    "{% for name in words %}{% endfor %}{{ name }}",
    "{% for q in words %}{% endfor %}{{ q }}",
    "{% for i in [1] %}{{ late }}{% endfor %}{% set late = 2 %}{{ late }}",
    "{% for i in [1] %}{{ name }}{% endfor %}{% set name = 2 %}{{ name }}",
    "{% macro m() %}{{ name }}{% endmacro %}{{ m() }}{% set name = 'later' %}{{ m() }}",
    "{% macro m() %}{{ late }}{% endmacro %}{{ m() }}{% set late = 1 %}{{ m() }}",
    "{% macro m() %}{% set name = 'in' %}{{ name }}{% endmacro %}{{ m() }}{{ name }}",
    "{% macro m() %}{{ name }}{% set name = 'in' %}{{ name }}{% endmacro %}{{ m() }}{{ name }}",
    "{% set true = 1 %}",
    "{% set 5 = 1 %}",
    "{% set a.b.c = 1 %}",
    "{% set a[0] = 1 %}",
    "{% set v %}x",
    "{% set v = %}",
    "{% set = 1 %}",
    "{% set a, b = 1 %}",
    "{% set a, b = [1, 2, 3] %}",
    "{% set x = x %}{{ x }}",
    "{% set q = q %}{{ q is defined }}",
    "{% set q = q | default('d') %}{{ q }}",
    "{% set n = n if n is defined else 0 %}{{ n }}",
    # with
    "{% with %}{% set v = 1 %}{{ v }}{% endwith %}{{ v }}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with a, b = (1, 2) %}{{ a }}{{ b }}{% endwith %}",
    "{% with name = 'w' %}{{ name }}{% endwith %}{{ name }}",
    "{% with a %}x{% endwith %}",
    # macros
    "{% macro m() %}hi{% endmacro %}{{ m() }}{{ m() }}",
    "{% macro m(a, b=2, c='x' ~ b) %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 5) }}{{ m(1, c=3) }}{{ m(b=1, a=0) }}",
    "{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m() }}",
    "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro m(a) %}{{ a }}{{ varargs | join('+') }}{% endmacro %}{{ m(1, 2, 3) }}",
    "{% macro m(varargs) %}{{ varargs }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}",
    "{% macro m(a=n) %}{{ a }}{% endmacro %}{{ m() }}{% set n = 8 %}{{ m() }}",
    "{% macro m(a, a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m(a=b, b=1) %}{{ a }}{{ b }}{% endmacro %}[{{ m() }}]",
    "{% macro fact(k) %}{% if k < 2 %}1{% else %}{{ k * (fact(k - 1) | int) }}{% endif %}{% endmacro %}{{ fact(6) }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro outer() %}{% macro inner(z) %}<{{ z }}>{% endmacro %}{{ inner(1) }}{% endmacro %}{{ outer() }}",
    "{% macro outer() %}{% macro inner() %}{% endmacro %}{% endmacro %}{{ outer() }}{{ inner is defined }}",
    "{% for i in nums %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% set ns = namespace() %}{% for i in nums %}{% macro m() %}{{ i }}{% endmacro %}{% set ns.m = m %}{{ ns.m() }}{% endfor %}",
    "{% macro m() %}x{% endmacro %}{{ m }}",
    "{% macro m() %}  x  {% endmacro %}[{{ m() | trim }}]",
    "{% macro m() %}<{% endmacro %}{{ m() ~ '&' }}{{ m() | e }}{{ m() is string }}",
    "{% macro m() %}{% set loop = 1 %}{{ loop }}{% endmacro %}{{ m() }}",
    "{% macro m(x) %}{% if x is mapping %}{{% for k in x %}{{ k }}{% endfor %}}{% else %}{{ x }}{% endif %}{% endmacro %}{{ m({'a': 1}) }}{{ m(5) }}",
    "{% macro m() %}",
    "{% macro %}{% endmacro %}",
    "{% macro m %}{% endmacro %}",
    "{% macro m(1) %}{% endmacro %}",
    "{% macro m(caller) %}{{ caller() }}{% endmacro %}{{ m(1) }}",
    "{% macro m(caller=none) %}{{ caller() if caller else 'no' }}{% endmacro %}{{ m() }}{% call m() %}x{% endcall %}",
    "{{ later() }}{% macro later() %}x{% endmacro %}",
    # call blocks
    "{% macro m(a) %}<{{ caller() }}{{ a }}>{% endmacro %}{% call m(1) %}body{% endcall %}",
    "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=5, c=6) m() %}{{ a }}{{ b }}{{ c }}{% endcall %}",
    "{% macro m() %}{% for i in nums %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(x) m() %}[{{ x }}]{% endcall %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}",
    "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}{{ name }}{% set name = 2 %}{{ name }}{% endcall %}{{ name }}",
    "{% macro a() %}a{{ caller() }}a{% endmacro %}{% macro b() %}b{{ caller() }}b{% endmacro %}{% call a() %}{% call b() %}c{% endcall %}{% endcall %}",
    "{% macro m() %}{{ kwargs }}{{ caller() }}{% endmacro %}{% call m(q=1) %}x{% endcall %}",
    "{% call name %}x{% endcall %}",
    "{% call m() %}x",
    "{% call range(3) %}x{% endcall %}",
    # filter blocks, generation, print, raw, comments
    "{% filter upper %}abc {{ name }}{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}aaa{% endfilter %}",
    "{% filter upper %}{% set v = 1 %}{{ v }}{% endfilter %}{{ v }}",
    "{% filter nosuch %}x{% endfilter %}",
    "{% filter %}x{% endfilter %}",
    "{% filter upper %}x",
    "{% generation %}a{{ n }}{% endgeneration %}",
    "{% generation %}{% set g = 1 %}{{ g }}{% endgeneration %}{{ g }}",
    "{% for i in nums %}{% generation %}{{ i }}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "{% generation %}x",
    "{% print n, name %}",
    "{% print %}",
    "{% raw %}{{ n }} {% if %}{% endraw %}",
    "{% raw -%}  {{ n }}  {%- endraw %}|",
    "a {%- raw %}  x {% endraw -%}  b",
    "{% raw %}\n a\n{% endraw %}\nb",
    "  {% raw %} x {% endraw %}\n  b",
    "{% raw %}x",
    "{% raw %}{% raw %}x{% endraw %}",
    "a{# comment #}b",
    "a{# {{ n }} {% if %} #}b",
    "a  {#- c -#}  b",
    "a\n  {# c #}\nb",
    "a {# c #}\nb",
    "a\n{#+ c +#}\nb",
    "a{#-#}b",
    "a{# unclosed",
    "a{#",
    "{#}#}",
    # white space
    "  {% if yes %}\n  a\n  {% endif %}\nb",
    "  {%+ if yes %}\n  a\n  {%+ endif %}\nb",
    "{% if yes +%}\na{% endif +%}\nb",
    "a  {%- if yes -%}  b  {%- endif -%}  c",
    "a\n\n  {%- if yes %}\n\n b{% endif %}",
    "a {{- n -}} b",
    "a {{ n }}\nb",
    "a\n  {{ n }}\nb",
    "  {{- n }}",
    "a {%+ if yes -%}  b {% endif %}",
    "x{% if yes %}\n{% endif %}\n\ny",
    "a\n\t {% set v = 1 %}\t\n{{ v }}",
    "{{ n }}  {% if yes %}x{% endif %}",
    "{% if yes %}  {% endif %}|",
    "{% if yes %}\n  {% if yes %}\n  x\n  {% endif %}\n{% endif %}\n",
    "a\r\nb\rc{% if yes %}\r\nd{% endif %}",
    "end\n",
    "end\n\n",
    "\n",
    "",
    "plain",
    "{{ '{{' }}{{ '}}' }}{{ '%}' }}",
    "{{ {'a': {'b': 1}}['a']['b'] }}",
    "{{ {'a': {}} }}",
    "{{-1}}",
    "{{+1}}",
    "{{ - 1 }}",
    "a{{- 'b' -}}\n\nc",
    "a \u00a0{%- if yes %}b{% endif %}",
    "{%if yes%}x{%endif%}",
    "{%\nif\nyes\n%}x{%\nendif\n%}",
    "{{\n n\n +\n 1\n}}",
    "{ { n } } {n} { % if % } {# x #}",
    "{{ n }",
    "{{ n ",
    "{{",
    "{%",
    "{% }}",
    "{{ %}",
    "{% if yes }}x{% endif %}",
    "{{ }}",
    "{% %}",
    "{{ n }} }} %} #}",
    "{%- set a = 1 -%}\n{%- set b = 2 %}\n{{ a + b }}",
    # what is not there
    "{% nosuch %}",
    "{% do x %}",
    "{% 5 %}",
    "{% trans %}x{% endtrans %}",
    # several lines, to see where errors are said to be
    "a\nb\n{{ 1/0 }}\nc",
    "a\n{{ missing.x }}",
    "{% if yes %}\n\n{{ missing.x }}\n{% endif %}",
    "{% for i in nums %}\nx\n{{ i.a.b }}\n{% endfor %}",
    "{% macro m(a) %}\n\n{{ a.b.c }}\n{% endmacro %}\n\n{{ m(1) }}",
    "a\n{{ raise_exception('r') }}",
    "a\n\n{% if x %}{% nosuch %}{% endif %}",
    "a\n{% set v = 1 +\n 'a' %}",
    "{#\n\n#}\n{{ 'a' + 1 }}",
    "{% raw %}\n\n{% endraw %}\n{{ 'a' + 1 }}",
    "a\n  {%- if yes %}\n{{ 'a' + 1 }}{% endif %}",
    "a\n{{ x | nosuch }}",
    "a\n\n{{ (1 }}",
    "a\n\n{{ 'x }}",
    "a\n\n{% if x %}",
    "a\n\n{# x",
    "\n\n{% endfor %}",
    "{% call m() %}\n{% endcall %}\n{% if %}",
    # mutation within expressions
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}",
    "{% set j = joiner() %}{% for i in nums %}{{ j() }}{{ i }}{% endfor %}",
    "{% set g = nums | map('string') %}{{ g | list }}{{ g | list }}",
    "{% set g = nums | select('odd') %}{{ g | first }}{{ g | first }}{{ g | list }}",
    "{% set r = words | reverse %}{{ r | first }}{{ r | join }}",
    "{% set f = name.upper %}{{ f() }}",
    "{% set f = range %}{{ f(2) | list }}",
    "{% set ns = namespace(l=[]) %}{% for i in nums %}{% set ns.l = ns.l + [i * 2] %}{% endfor %}{{ ns.l }}",
    "{% set ns = namespace(s='') %}{% for w in words %}{% set ns.s = ns.s ~ w ~ ',' %}{% endfor %}{{ ns.s }}",
    "{% set ns = namespace(d={}) %}{% for w in words %}{% set ns.d = dict(ns.d, **{w: loop.index}) %}{% endfor %}{{ ns.d }}",
    "{% set ns = namespace() %}{% set ns.ns = ns %}{{ ns.ns.ns is defined }}",
    "{% set a = [1] %}{% set b = a %}{{ a is sameas b }}{{ a is sameas [1] }}",
]
