"""Small runs of every shape for the random kills: their workflows, and what they must have done in the end.

Every operation says in `log` that it is done, as "WORKPACKAGE CYCLE OPERATION"; a shared one says "shared".
"""

HEAD = """\
name: shape
outpath: run
parameterset: {name: p, parameter: {name: i, type: int, _: "1,2,3"}}
patternset: {name: pt, pattern: {name: v, type: int, _: "v=$jube_pat_int"}}
analyser: {name: an, use: pt, analyse: {step: %(step)s, file: %(file)s}}
result: {use: an, table: {name: t, style: csv, sort: i, column: [i, v, v_cnt, v_last]}}
step:
"""


def said(operation):
    return f"; echo $jube_wp_id $jube_wp_cycle {operation} >> $jube_benchmark_home/log"


def workflow(steps, step="b", file="stdout"):
    return HEAD % {"step": step, "file": file} + steps


SHAPES = {
    "plain": workflow(f"""\
  - name: a
    use: p
    export: true
    do:
      - "echo v=$i; export Q=q$i{said(0)}"
      - "echo $Q; trap 'export R=r$i' EXIT{said(1)}"
  - name: b
    depend: a
    do:
      - "echo $Q $R v=1$i{said(0)}"
      - "echo v=2$i{said(1)}"
"""),
    "work_dir": workflow(f"""\
  - name: b
    use: p
    work_dir: $jube_benchmark_home/w$i
    do:
      - "echo v=$i{said(0)}"
      - "echo v=1$i; export Q=2{said(1)}"
      - "echo v=${{Q}}$i{said(2)}"
"""),
    "shared": workflow(f"""\
  - name: b
    use: p
    shared: all
    do:
      - "echo v=$i{said(0)}"
      - {{shared: true, _: "echo together; echo shared >> $jube_benchmark_home/log"}}
      - "echo v=1$i{said(2)}"
      - {{shared: true, _: "echo again; echo shared >> $jube_benchmark_home/log"}}
      - "echo v=2$i{said(4)}"
"""),
    "cycles": workflow(f"""\
  - name: b
    use: p
    cycles: 3
    do:
      - "echo v=$i$jube_wp_cycle{said(0)}"
      - "echo v=1$i{said(1)}"
"""),
    "async": workflow(f"""\
  - name: b
    use: p
    do:
      - "echo v=$i{said(0)}"
      - {{done_file: there, _: "echo v=1$i; ( exec > log.late; sleep 0.02; touch there ) &"}}
      - "echo v=2$i{said(2)}"
"""),
    "retry": workflow("""\
  - name: b
    use: p
    retry: 2
    do:
      - "echo v=$i"
      - "test -e $jube_benchmark_home/tried$i || { touch $jube_benchmark_home/tried$i; exit 1; }; echo v=1$i"
"""),
    "setup": workflow(f"""\
  - name: a
    kind: setup
    do: "echo made > made{said(0)}"
  - name: b
    use: p
    depend: a
    do: "cat a/made; echo v=$i{said(0)}"
"""),
}
