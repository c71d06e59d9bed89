// tally new: the file that it writes runs, and shows what the command printed.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

TEST_CASE("new: a workflow from a command, with its numbers and what it printed") {
  const Shell shell;
  shell.file("program",
             "#!/bin/sh\n"
             "echo \"started 12:30:05 on 2024-01-02\"\n"
             "echo \"Time (total): 5.5s\"\n"
             "echo \"Tokens per second:   100.5 tokens/s (mean)\"\n"
             "echo \"step 1 loss 2.5\"\n"
             "echo \"step 2 loss 2.25\"\n"
             "echo \"got=$2 and $3, it's $4\"\n");
  shell.sh("chmod +x program");
  Ran ran = shell.tally("new bench -- ./program --batch-size 4 --lr=0.5 'a $b' -q");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const std::string text = shell.content("bench.yaml");
  CHECK_MESSAGE(has(ran.out, "\nbench.yaml:\n" + text), ran.out);
  CHECK_MESSAGE(
      has(text,
          "name: bench\n"
          "parameters:                 # more values are more points: [1, 2, 4]\n"
          "  batch_size: [4]\n"
          "  lr: [0.5]\n"
          "run: ./program --batch-size $batch_size --lr=$lr 'a $$b' -q\n"
          "# repeat: 6                 # each point six times: the median and its 95 % interval\n"
          "metrics:\n"
          "  time_total: {_: '^\\s*Time \\(total\\): $jube_pat_fp', unit: s, better: lower}\n"
          "  tokens_per_second: {_: ^\\s*Tokens per second:\\s+$jube_pat_fp, unit: tokens/s, "
          "better: higher}\n"
          "  loss: (?<![\\w.-])loss $jube_pat_fp  # the first of 2; loss_last, _min, _max, _avg "
          "are "
          "columns, too\n"
          "  got: ^\\s*got=$jube_pat_fp\n"),
      text);
  ran = shell.tally("-q run bench.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "|          4 | 0.5 |           5.5 |                       100.5 |"),
                ran.out);
  CHECK(has(shell.content("bench_run/000000/000000_run/work/stdout"),
            "got=4 and --lr=0.5, it's a $b"));
}

TEST_CASE("new: an example without a command, and nothing that is there is lost") {
  const Shell shell;
  CHECK(shell.tally("new first").code == 0);
  Ran ran = shell.tally("-q run first.yaml");
  CHECK_MESSAGE(has(ran.out, "|    4 |    4 |\n"), (ran.out + ran.err));
  shell.sh("echo mine > first.yaml");
  ran = shell.tally("new first -- echo a 1");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "error: 'first.yaml' is there already\n"), ran.err);
  CHECK(shell.content("first.yaml") == "mine\n");
  ran = shell.tally("new second -- sh -c 'exit 3'");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "the command ended with exit code 3: no file was written\n"), ran.err);
  CHECK(!shell.exists("second.yaml"));
  CHECK(shell.tally("--no-exec new third -- touch here").code == 2);
  CHECK(!shell.exists("here"));
  CHECK(shell.tally("new a/b").code == 2);
}

TEST_CASE("new: the time of a command that prints no number") {
  const Shell shell;
  shell.file("in put.txt", "text\n");
  shell.file("program", "#!/bin/sh\ncat \"$2\" >out.txt; test $1 = -6\n");
  shell.sh("chmod +x program");
  Ran ran = shell.tally("new pack -- ./program -6 'in put.txt'");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const std::string text = shell.content("pack.yaml");
  CHECK_MESSAGE(
      has(text,
          "name: pack\n"
          "parameters:                 # more values are more points: [1, 2, 4]\n"
          "  n: [-6]\n"
          "run: bash -c 'TIMEFORMAT=\"time = %R\"; time ./program $n '\\''in put.txt'\\'''\n"
          "files: [in put.txt, program]\n"
          "# repeat: 6                 # each point six times: the median and its 95 % interval\n"
          "metrics:                    # it printed no name with a number: the time that it takes\n"
          "  time: {_: 'time = $jube_pat_fp', file: stderr, unit: s, better: lower}\n"),
      text);
  ran = shell.tally("-q run pack.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "|  n | time[s] |"), (ran.out + ran.err));
}

TEST_CASE("new: a metric's first match is the number that it was made for") {
  const Shell shell;
  shell.file("program",
             "echo val_loss 3.0 loss 2.5\necho '| setup time = 9 | time = 3'\n"
             "echo 'null: 4'\n");
  // Without a name the workflow is called as the program.
  Ran ran = shell.tally("new -- sh program");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const std::string text = shell.content("sh.yaml");
  CHECK_MESSAGE(!has(text, "\n  time: "), text);  // the pattern would find that of the set-up
  ran = shell.tally("-q run sh.yaml");
  CHECK_MESSAGE(has(ran.out,
                    "| val_loss | loss | setup_time | null |\n"
                    "|----------|------|------------|------|\n"
                    "|      3.0 |  2.5 |          9 |    4 |\n"),
                (text + ran.out + ran.err));
}

TEST_CASE("new: words that are no name, and a command with a line break") {
  const Shell shell;
  for (const char* words : {"''", "'x y'", "a/b", "-- ", "a b", "-- ..", "'a\nb'"}) {
    CAPTURE(std::string(words));
    const Ran ran = shell.tally(std::string("new ") + words);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, "error: "), ran.err);
    CHECK(shell.sh("ls").out.empty());
  }
  CHECK(shell.tally("new two.yaml -- printf 'a = 1\nb = 2\n'").code == 0);
  const Ran ran = shell.tally("-q run two.yaml");
  CHECK_MESSAGE(has(ran.out, "| 1 | 2 |\n"), (shell.content("two.yaml") + ran.out + ran.err));
}

TEST_CASE("new: lines of numbers are rows, named by the line above them") {
  const Shell shell;
  shell.file("osu_latency",
             "echo\necho '# OSU MPI Latency Test v5.6.2'\necho '# Size          Latency (us)'\n"
             "echo '0                       1.20'\necho '1                       1.22'\n"
             "echo '1024                    2.30'\n");
  Ran ran = shell.tally("new osu -- sh osu_latency");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(
      shell.content("osu.yaml") ==
          "# Look at the plan with `tally run -n osu.yaml`, run it with `tally run osu.yaml`.\n"
          "name: osu\n"
          "run: sh osu_latency\n"
          "# repeat: 6                 # each point six times: the median and its 95 % interval\n"
          "rows: size                  # a row for each of the 3 lines of numbers\n"
          "metrics:\n"
          "  size: {_: ^\\s*$jube_pat_int\\s+\\S+\\s*$, type: int}\n"
          "  latency: {_: ^\\s*\\S+\\s+$jube_pat_fp\\s*$, unit: us, better: lower}\n"
          "# chart: {name: osu, x: size, y: latency, log: x}\n",
      shell.content("osu.yaml"));
  const Ran shown = shell.tally("-q run osu.yaml");
  CHECK_MESSAGE(shown.out ==
                    "osu:\n"
                    "| size | latency[us] |\n"
                    "|------|-------------|\n"
                    "|    0 |        1.20 |\n"
                    "|    1 |        1.22 |\n"
                    "| 1024 |        2.30 |\n\n",
                (shown.out + shown.err));
}

TEST_CASE("new: rows of several columns beside named numbers, and lines that are no rows") {
  const Shell shell;
  shell.file("bw",
             "echo '# [ pairs: 2 ] [ window size: 64 ]'\n"
             "echo '# Size                  MB/s        Messages/s'\n"
             "for s in 1 2 4; do echo $s $((3 * s)).25 1e$s; done\n"
             "echo ready 7\n");
  CHECK(shell.tally("new bw -- sh bw").code == 0);
  const std::string text = shell.content("bw.yaml");
  Ran ran = shell.tally("-q run bw.yaml");
  CHECK_MESSAGE(
      has(ran.out,
          "| size | mb_s[MB/s] | messages_s[Messages/s] | pairs | window_size | ready |\n"
          "|------|------------|------------------------|-------|-------------|-------|\n"
          "|    1 |       3.25 |                     10 |     2 |          64 |       |\n"
          "|    2 |       6.25 |                    100 |     2 |          64 |       |\n"
          "|    4 |      12.25 |                  10000 |     2 |          64 |     7 |\n"),
      (text + ran.out + ran.err));
  // Two lines are no table, and words in them make none.
  CHECK(shell.tally("new two -- printf '1 2\\n3 4\\n'").code == 0);
  CHECK(!has(shell.content("two.yaml"), "rows:"));
  CHECK(shell.tally("new words -- printf 'a 2\\nb 4\\nc 5\\n'").code == 0);
  CHECK(!has(shell.content("words.yaml"), "rows:"));
}

TEST_CASE("new: what the output repeats names the parameters, and is no metric") {
  const Shell shell;
  shell.file("triad",
             "echo \"Array size: $1 elements\"\necho 'Triad: 1263.0 MB/s'\n"
             "echo \"Repetitions: $2\"\necho threads: $4\n");
  CHECK(shell.tally("new triad -- sh triad 2000000 10 --threads 16").code == 0);
  const std::string text = shell.content("triad.yaml");
  CHECK_MESSAGE(has(text,
                    "parameters:                 # more values are more points: [1, 2, 4]\n"
                    "  array_size: [2000000]\n"
                    "  repetitions: [10]\n"
                    "  threads: [16]\n"
                    "run: sh triad $array_size $repetitions --threads $threads\n"),
                text);
  CHECK_MESSAGE(
      text.ends_with("metrics:\n"
                     "  triad: {_: '^\\s*Triad: $jube_pat_fp', unit: MB/s, better: higher}\n"),
      text);
}
