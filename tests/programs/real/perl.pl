# SPDX-License-Identifier: Apache-2.0
# Text, numbers, processes, signals, sockets and threads in Perl.
use strict;
use warnings;
use threads;
use threads::shared;
use IO::Socket::INET;
use List::Util qw(sum shuffle);
use POSIX qw(:sys_wait_h floor);
$| = 1;

print "--- text\n";
my %count;
$count{lc $1}++ while "The cat and the dog, and the bird." =~ /(\w+)/g;
print join(", ", map { "$_=$count{$_}" } sort keys %count), "\n";
my $text = join "", map { sprintf "%04d:%s\n", $_, "x" x ($_ % 50) } 1 .. 20000;
print length($text), " ", scalar(() = $text =~ /^\d*7:x+$/mg), "\n";
my @sorted = sort { $b <=> $a } map { ($_ * 7919) % 10007 } 1 .. 20000;
print "@sorted[0 .. 4] ", sum(@sorted), "\n";
print unpack("H*", pack("nNvV", 1, 2, 3, 4)), "\n";

print "--- files\n";
open my $out, ">", "data" or die;
print $out "line $_\n" for 1 .. 10000;
close $out;
open my $in, "<", "data" or die;
seek $in, -6, 2;
print scalar <$in>;
close $in;
print join(" ", (stat "data")[7], -e "data", -d "."), "\n";
rename "data", "data2" and print "renamed\n";
print join(" ", glob "data*"), "\n";

print "--- processes\n";
my @pids;
for my $n (1 .. 10) {
    my $pid = fork;
    die "fork: $!" unless defined $pid;
    exit $n if $pid == 0;
    push @pids, $pid;
}
print join(" ", map { waitpid $_, 0; $? >> 8 } @pids), "\n";
print `echo from a shell; exit 3`, $? >> 8, "\n";
system("kill -9 \$\$");
print "signal ", $? & 127, "\n";
open my $pipe, "-|", "seq 1 1000 | sort -rn | head -n 3" or die;
print while <$pipe>;
close $pipe;
open my $sink, "|-", "tr a-z A-Z" or die;
print $sink "to a filter\n";
close $sink;
pipe my $r, my $w or die;
if (my $pid = fork) {
    close $w;
    print "child says: $_" while <$r>;
    waitpid $pid, 0;
} else {
    close $r;
    print $w "hello\n";
    open STDOUT, ">&", $w or die;
    exec "echo", "over exec";
}

print "--- signals\n";
my $got = 0;
local $SIG{USR1} = sub { $got++ };
kill USR1 => $$ for 1 .. 100;
print "USR1 $got\n";
eval {
    local $SIG{ALRM} = sub { die "alarm\n" };
    alarm 1;
    select undef, undef, undef, 30;
    print "no alarm\n";
};
print "died: $@";
local $SIG{CHLD} = sub { $got = -1 };
my $child = fork // die;
exit 0 unless $child;
select undef, undef, undef, 0.05 until $got == -1;
waitpid $child, 0;
print "CHLD\n";

print "--- sockets\n";
my $server = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1")
    or die;
my $port = $server->sockport;
for my $n (1 .. 5) {
    next if fork // die;
    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $port)
        or die;
    print $s "client $n\n";
    my $answer = <$s>;
    exit($answer eq "hello client $n\n" ? 0 : 1);
}
for (1 .. 5) {
    my $c = $server->accept or die;
    my $line = <$c>;
    print $c "hello $line";
    close $c;
}
my $bad = 0;
while ((my $pid = waitpid -1, 0) > 0) { $bad++ if $? }
print "bad clients: $bad\n";

print "--- threads\n";
my $shared :shared = 0;
my @threads = map {
    my $n = $_;
    threads->create(sub {
        for (1 .. 200) { lock $shared; $shared += $n }
        return $n * $n;
    })
} 1 .. 4;
print join(" ", map { $_->join } @threads), " $shared\n";
print "--- end\n";
