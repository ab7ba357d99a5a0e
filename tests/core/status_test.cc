// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace lr {
namespace {

Status half_status(int value) {
    if (value % 2 != 0)
        return fail(Code::kInvalidArgument, "half: expected an even number, got {}", value);
    return {};
}

Result<int> half(int value) {
    LR_TRY(half_status(value));
    return value / 2;
}

Result<int> quarter(int value) {
    LR_TRY_ASSIGN(const int once, half(value));
    LR_TRY_ASSIGN(int twice, half(once));
    return twice;
}

Status quarter_status(int value) {
    LR_TRY_ASSIGN(const int result, quarter(value));
    return result > 100 ? Status(fail(Code::kUnsupported, "too large")) : Status();
}

TEST(Status, IsOkByDefault) {
    const Status status;
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(status.code(), Code::kOk);
    EXPECT_EQ(status.message(), "");
}

TEST(Status, CarriesCodeAndFormattedMessage) {
    const Status status = half_status(7);
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), "half: expected an even number, got 7");
}

TEST(Status, PutsContextBeforeItsMessage) {
    EXPECT_EQ(half_status(7).with_context("layer 3").message(),
              "layer 3: half: expected an even number, got 7");
    EXPECT_EQ(half_status(7).with_context("layer 3").code(), Code::kInvalidArgument);
    EXPECT_TRUE(Status().with_context("layer 3").ok());
}

TEST(Status, NamesEveryCode) {
    EXPECT_STREQ(code_name(Code::kOk), "ok");
    EXPECT_STREQ(code_name(Code::kInvalidArgument), "invalid_argument");
    EXPECT_STREQ(code_name(Code::kInvalidFile), "invalid_file");
    EXPECT_STREQ(code_name(Code::kNotFound), "not_found");
    EXPECT_STREQ(code_name(Code::kUnsupported), "unsupported");
    EXPECT_STREQ(code_name(Code::kResourceExhausted), "resource_exhausted");
    EXPECT_STREQ(code_name(Code::kInternal), "internal");
}

TEST(Failure, ConvertsToStatusAndToAnyResult) {
    const Status status = fail(Code::kNotFound, "no tensor '{}'", "x");
    EXPECT_EQ(status.code(), Code::kNotFound);
    const Result<std::unique_ptr<int>> result = fail(Code::kNotFound, "no tensor '{}'", "x");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().message(), status.message());
    const Result<int> passed_on = fail(result.error());
    EXPECT_EQ(passed_on.error().code(), Code::kNotFound);
}

TEST(Try, GoesOnWithTheValue) {
    EXPECT_EQ(quarter(12).value(), 3);
    EXPECT_TRUE(quarter_status(12).ok());
}

TEST(Try, ReturnsTheFirstErrorUnchanged) {
    EXPECT_EQ(quarter(3).error().message(), "half: expected an even number, got 3");
    EXPECT_EQ(quarter(6).error().message(), "half: expected an even number, got 3");
    EXPECT_EQ(quarter_status(6).message(), "half: expected an even number, got 3");
    EXPECT_EQ(quarter_status(404).code(), Code::kUnsupported);
}

TEST(Try, MovesTheValueOut) {
    const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); };
    const auto use = [&]() -> Result<int> {
        LR_TRY_ASSIGN(std::unique_ptr<int> owned, make());
        return *owned;
    };
    EXPECT_EQ(use().value(), 5);
}

} // namespace
} // namespace lr
