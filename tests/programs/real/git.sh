# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# A repository with branches, merges, a clone over a child process, gc.
export GIT_AUTHOR_DATE='2001-01-01T00:00:00Z' GIT_EDITOR=true HOME="$PWD"
export GIT_COMMITTER_DATE=$GIT_AUTHOR_DATE
git_program=$(command -v git)
git() { target "$git_program" "$@"; }
git config --global user.name tester
git config --global user.email tester@example.org
git config --global init.defaultBranch main
git config --global gc.autoDetach false
git init -q one
cd one || exit 1
n=0
while [ $n -lt 60 ]; do
    mkdir -p dir$((n % 7))
    i=0
    while [ $i -lt 100 ]; do
        echo "file $n line $i $((n * i))"
        i=$((i + 1))
    done >dir$((n % 7))/file$n
    n=$((n + 1))
done
git add .
git commit -q -m first
for n in 1 2 3 4 5 6; do
    echo "change $n" >>dir1/file1
    echo "only $n" >new$n
    git add -A
    git commit -q -m "change $n"
done
git checkout -q -b side HEAD~3
echo side >>dir2/file2
git commit -q -a -m side
git checkout -q main
git merge -q --no-edit side
git log --oneline --graph | cat
git checkout -q -b conflict HEAD~1
echo conflict >>dir2/file2
git commit -q -a -m conflict
git merge side
echo "merge $?"
git status --short
git merge --abort
git checkout -q main
git diff --stat HEAD~4 | cat
git grep -c 'line 99' -- dir3 | head -n 5
git blame -s dir1/file1 | tail -n 3
git tag -a v1 -m 'version 1'
git bundle create -q ../bundle --all
git count-objects
git gc -q --prune=now
git count-objects
git fsck --full --strict
cd ..
git clone -q "file://$PWD/one" two
git -C two log --format=%H -1
git -C two checkout -q side
echo from two >two/dir4/added
git -C two add .
git -C two commit -q -m 'from two'
git -C two push -q origin HEAD:refs/heads/two
git -C one log --format='%H %s' -2 two
git clone -q bundle three
git -C three rev-parse HEAD
git -C three describe
git -C one stash list
git -C one archive main | sha256sum
git -C one rebase -q main side
git -C one log --format=%s -3
git clone -q nowhere four
echo "status $?"
rm -rf one two three bundle
