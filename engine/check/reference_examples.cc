#include "engine/check/reference_page.h"

namespace tally {

const char* const kReferenceExamples = R"EXAMPLES(
# Examples

A test runs them and compares what they print.

## What a pattern is shown as: suffixes

A pattern may match many times: in one file, in several, and in the iterations of a point. In a table its name alone is the
first match, and a suffix says which value of all matches is meant.

| suffix | value |
|---|---|
| `_first`, `_last` | the first and the last match, in the order of the workpackages and files |
| `_min`, `_max`, `_avg`, `_sum` | of all matches; numbers only |
| `_std` | standard deviation of the sample (n - 1); 0 for one match |
| `_cnt` | how many matches there were |

Save this as `suffixes.yaml`:

```yaml
name: suffixes
outpath: suffixes_run
parameterset:
  name: sizes
  parameter: {name: size, _: "1,2"}
step:
  name: measure
  use: sizes
  iterations: 2
  do: 'echo "rate = $size.5 rate = $size$jube_wp_iteration.0"'
patternset:
  name: output
  pattern: {name: rate, type: float, _: 'rate = $jube_pat_fp'}
analyser: {name: read, use: output, analyse: {step: measure, file: stdout}}
result:
  use: read
  table:
    name: rates
    style: pretty
    column: [size, rate, rate_last, rate_min, rate_max, {_: rate_avg, format: .2f}, {_: rate_std, format: .3f}, rate_cnt]
```

```console
$ tally -q run suffixes.yaml -r
rates:
| size | rate | rate_last | rate_min | rate_max | rate_avg | rate_std | rate_cnt |
|------|------|-----------|----------|----------|----------|----------|----------|
|    1 |  1.5 |      11.0 |      1.5 |     11.0 |     6.00 |    5.212 |        4 |
|    2 |  2.5 |      21.0 |      2.5 |     21.0 |    11.50 |   10.400 |        4 |
```

## Parts of patterns: `$jube_pat_*`

| name | stands for | matches |
|---|---|---|
| `$jube_pat_int` | `([+-]?\d+)` | a whole number |
| `$jube_pat_fp` | `([+-]?(?:\d*\.?\d+(?:[eE][-+]?\d+)?\|\d+\.))` | a number |
| `$jube_pat_wrd` | `(\S+)` | a word: no white space |
| `$jube_pat_nint`, `$jube_pat_nfp`, `$jube_pat_nwrd` | the same with `(?:` | the same, to be passed over |
| `$jube_pat_bl` | `(?:\s+)` | white space |

In files with any of Tally's own keys, `$jube_pat_fp` and `$jube_pat_nfp` also match Fortran's exponents
(`-0.76026D+02`, `1.0-100`). Any other `$name` in a pattern of such a file is a parameter or another
pattern; one that nothing defines is an error (`$$name` means the dollar itself).

What stands in parentheses is the pattern's value. Save this as `parts.yaml`:

```yaml
name: parts
outpath: parts_run
step: {name: s, do: 'echo "node jwb01: step 10 of 40 took 1.25e-3 s"'}
patternset:
  name: output
  pattern:
    - {name: node, _: 'node $jube_pat_wrd:'}
    - {name: steps, type: int, _: 'step $jube_pat_nint of $jube_pat_int'}
    - {name: seconds, type: float, unit: s, _: 'took${jube_pat_bl}$jube_pat_fp'}
analyser: {name: read, use: output, analyse: {step: s, file: stdout}}
result: {use: read, table: {name: parts, style: pretty, column: [node, steps, seconds]}}
```

```console
$ tally -q run parts.yaml -r
parts:
|  node | steps | seconds[s] |
|-------|-------|------------|
| jwb01 |    40 |    0.00125 |
```

## Names that a workpackage knows: `$jube_*`

| name | stands for |
|---|---|
| `$jube_benchmark_name`, `_id`, `_padid` | the benchmark, and the number of the run: 7, 000007 |
| `$jube_benchmark_home`, `_rundir` | the folder of the input file; the run's folder |
| `$jube_benchmark_start` | when the run was started: 2026-11-21T01:18:53 |
| `$jube_step_name`, `_iterations`, `_cycles` | the step |
| `$jube_wp_id`, `_padid` | the workpackage's number |
| `$jube_wp_iteration`, `_cycle` | which copy of its point, and which round through the commands, from 0 |
| `$jube_wp_abspath`, `_relpath` | its work directory |
| `$jube_wp_parent_STEP_id` | the number of its parent in the step `STEP` |
| `$jube_wp_envstr`, `_envlist` | `export` lines, and names, of the parameters with `export: true` |
| `$jube_wp_status` | RUNNING, in a result DONE or ERROR |

Save this as `names.yaml`:

```yaml
name: names
outpath: names_run
parameterset:
  name: sizes
  parameter: {name: size, _: "1,2"}
step:
  - {name: make, use: sizes, do: 'echo $size >input'}
  - name: work
    depend: make
    do: 'echo "run $jube_benchmark_padid, $jube_step_name $jube_wp_id after $jube_wp_parent_make_id: $(cat make/input)"'
```

```console
$ tally -q run names.yaml
$ cat names_run/000000/*_work/work/stdout
run 000000, work 2 after 0: 1
run 000000, work 3 after 1: 2
```

## Plain values

In a YAML file that uses any key marked **T**, a value without quotes is the text as it is written: `12.10`, `010`,
`1e3`, `true`, `yes`, `12:30:00`. Nothing, `~` and `null` are the empty text. Keys that take a number, a time or true or
false read such a value as YAML 1.2 does: `iterations: 010` is 10. A parameter of `type: int` or `float` keeps the
rules of its type. Its text stays as written if Python can read it as a number: `010` stays, and counts as 10; `0x1F`
becomes 31.

The file that is run decides for what it takes from other files by `from`, `init_with`, `platform` and `!include`. A
file that uses a key marked **T** itself is read like this in any case. In plain JUBE language values are PyYAML's:
`12.1`, `8`, `True`, `True`, `45000` for `12.10`, `010`, `true`, `yes`, `12:30:00`.

`true` is no word of Python. In an expression, compare the text, or write Python's own: a parameter `amp` with the
values `true` and `false` is used as `active: "'$amp' == 'true'"`. An expression that is `true` or `false` alone needs
neither: `active: $amp`. In conditions of `where` and of results, `amp` is the text, which is neither true nor false:
`amp == 'true'`.

Save this as `plain.yaml`:

```yaml
name: plain
outpath: plain_run
parameterset:
  name: versions
  parameter:
    - {name: cuda, _: [12.9, 12.10]}
    - {name: amp, _: [true, false]}
step:
  name: work
  kind: run
  use: versions
  active: "'$cuda' != '12.9' or '$amp' == 'true'"
  do: echo "CUDA $cuda, amp=$amp"
```

```console
$ tally -q run plain.yaml
$ cat plain_run/000000/*_work/work/stdout
CUDA 12.9, amp=true
CUDA 12.10, amp=true
CUDA 12.10, amp=false
```

## Values without a type

A parameter or pattern without `type` has texts. Where a number is needed:

| where | a value without a type |
|---|---|
| Python: `where`, `filter`, `expression`, the condition of a reference | a text beside texts, and beside numbers the number that it reads as: `n == 4`, `n < 8` and `n * 2` need no `type`. Two such values are numbers where they are calculated with or ordered: `n + m` is 11 with 4 and 7. Sets and dictionaries take none; lists and tuples do. |
| what an `expression` gives, as `max(n, 5)`, in a column with `statistic`, `better` or a `relative_to` that divides it; `y` of a chart | the number that it reads as. Any other text is an error, also in one row of the table or one repeat of such a row. |
| `statistic`, `better`, `relative_to`, `until`, `measured_over`, `of` of a reference, and names such as `NAME_avg` and `NAME_median` | an error of `validate`: give it `type: float` or `type: int`, in each set from which the rows are. `NAME_cnt`, `NAME_first` and `NAME_last` need none. |
| all else, as `sort` and `x` of a chart | the text |

A number is written in the same form where they are equal: `n == 0x10` with 0x10. In another form, as `n == 16` with 0x10,
`ver == 12.1` with 12.10, and two such values 12.10 and 12.1, it could be text or number, which is an error that says so.
`'$n'`, `str(n)` and `complex(n)` read the text, and so do its parts and what text functions make of it: `n[0] == 4` and
`n.split('-')[0] == 4` are errors, `n[0] == '4'` and `int(n[0]) == 4` are not. In plain JUBE language `$n` is put in as text, as JUBE does.

## Variables in `env`

The value of a variable in `env` may name other variables. Parameters are put in first. Every `$NAME` and
`${NAME}` that is left is a variable of the environment in which the command would run without this `env`. It is
empty if it is not set there. `$$` is a dollar, and so is a `$` before anything else. Nothing is run: `$(…)`,
backquotes, quotes and backslashes stay as they are.

- The entries of one `env` do not see each other, so their order does not matter.
- A step's `env` sees its modules and the `interconnect` and `env` of its platform. A container's sees the job's
  environment.
- A dollar that a parameter's value has counts as if it were written in `env`. `$$NAME` is the text `$NAME`. (In a
  command it is the shell's variable.)
- The rule is the same for commands, launch lines and job scripts. Set-ups and builds are done again when a variable
  that their `env` names has changed.

Save this as `variables.yaml`:

```yaml
name: variables
outpath: variables_run
parameterset: {name: places, parameter: {name: tools, _: $HOME/tools}}
step:
  name: work
  kind: run
  use: places
  env:
    HOME: /home/you
    PLACE: $tools/bin
    LIBRARIES: "/opt/lib:$NOT_SET"
    PRICE: 5$ or $$HOME, not $(date)
  do: 'printenv HOME LIBRARIES PRICE; test "$$PLACE" != /home/you/tools/bin && echo "HOME was the old one"'
```

```console
$ tally -q run variables.yaml
$ cat variables_run/000000/*_work/work/stdout
/home/you
/opt/lib:
5$ or $HOME, not $(date)
HOME was the old one
```

## `repeat` and `iterations`

Both make several workpackages of a point, and a row of the table of all their matches. `iterations` is JUBE's and
any step's: the copies of a point run one after the other. `repeat` is for measurements: every point once, then every point again, so that
a slow minute of the machine does not fall on one point alone; the next round begins when the one before has ended.

Save this as `rounds.yaml`:

```yaml
name: rounds
outpath: rounds_run
parameterset:
  name: sizes
  parameter: {name: size, _: "1,2"}
step:
  - {name: i, use: sizes, iterations: 2, do: 'echo "iterations: $size" >>$jube_benchmark_rundir/order'}
  - {name: r, kind: run, use: sizes, repeat: 2, do: 'echo "repeat: $size" >>$jube_benchmark_rundir/order'}
```

```console
$ tally -q run rounds.yaml
$ cat rounds_run/000000/order
iterations: 1
iterations: 1
iterations: 2
iterations: 2
repeat: 1
repeat: 2
repeat: 1
repeat: 2
```
)EXAMPLES";

}  // namespace tally
