// SPDX-License-Identifier: Apache-2.0
#include "report/table.h"

#include <gtest/gtest.h>

namespace lr::report {
namespace {

TEST(Table, AlignsNumbersToTheRightAndCountsCharactersNotBytes) {
    Table table("tiles", {{"expert", Align::kLeft}, {"rows"}, {"note", Align::kLeft}});
    table.add({"0", "70", "64 × 128"});
    table.add({"é1", "12", ""});
    table.add({"all", "1,082", "x"});
    EXPECT_EQ(table_text(table), "tiles\n"
                                 "  expert   rows  note\n"
                                 "  0          70  64 × 128\n"
                                 "  é1         12\n"
                                 "  all     1,082  x\n");
    EXPECT_EQ(table_text(table, 0).substr(6, 7), "expert ");
}

TEST(Table, HasNoLineForAnEmptyCaption) {
    const Table table("", {{"a"}, {"b"}});
    EXPECT_EQ(table_text(table, 0), "a  b\n");
}

TEST(TableDeathTest, RefusesARowOfAnotherWidth) {
    Table table("t", {{"a"}, {"b"}});
    EXPECT_DEATH(table.add({"1"}), "cells.size\\(\\) == columns.size\\(\\)");
}

TEST(Table, GroupsDigitsByThousands) {
    EXPECT_EQ(group_digits(0), "0");
    EXPECT_EQ(group_digits(999), "999");
    EXPECT_EQ(group_digits(1000), "1,000");
    EXPECT_EQ(group_digits(1234567), "1,234,567");
    EXPECT_EQ(group_digits(-999), "-999");
    EXPECT_EQ(group_digits(-33154), "-33,154");
}

} // namespace
} // namespace lr::report
