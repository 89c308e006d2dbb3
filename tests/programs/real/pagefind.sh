# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# pagefind.sh BINARY SITE: its version, then an index of the site, whose files
# are left behind to be compared. All of an index is the same from run to run as
# long as no filters are asked for, whose values are written in random order.
cp "$1" pagefind
cp -r "$2" site
target ./pagefind --version
echo "status $?"
target ./pagefind --site site | grep -v '^Finished in'
find site/pagefind -name '*.pf_fragment' | wc -l
rm -r pagefind
