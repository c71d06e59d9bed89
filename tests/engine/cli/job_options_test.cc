// Job scripts through the program: options that contradict keys, texts that no script can state, and
// what a step without a scheduler does with its resources.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

std::string bench(const std::string& resources, const std::string& keys = {},
                  const std::string& platform = "slurm", const std::string& name = "b") {
  return "name: " + name +
         "\noutpath: runs\n"
         "parameterset: {name: p, parameter: [{name: x, separator: \"\", _: \"" +
         (keys.rfind("x=", 0) == 0 ? keys.substr(2) : "1") +
         "\"}]}\n"
         "step:\n  name: s\n  kind: run\n  use: p\n  platform: " +
         platform + "\n  " + (keys.rfind("x=", 0) == 0 || keys.empty() ? "suffix: ''" : keys) +
         "\n  resources: {nodes: 1, tasks_per_node: 1, time: 5m" + resources +
         "}\n  launch: echo v=5\n";
}

// Every command that could submit or show the job refuses the file, at that place.
void refused(const Shell& shell, const std::string& place, const std::string& message) {
  for (const char* command : {"validate b.yaml", "run b.yaml", "run b.yaml -n --max-node-hours 1",
                              "script b.yaml --out o"}) {
    CAPTURE(command);
    const Ran ran = shell.tally(command);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, place + ":"), ran.err);
    CHECK_MESSAGE(has(ran.err, message), ran.err);
  }
  CHECK(shell.tally("run b.yaml -n --script 0").out.find("#SBATCH") == std::string::npos);
}

}  // namespace

TEST_CASE("an option cannot pass the limits that the plan counts with") {
  for (const char* option : {"time: \"10:00:00\"", "nodes: 20", "N: 20", "tim: 600", "array: 0-99",
                             "ntasks: 64", "$x: 5"}) {
    CAPTURE(option);
    const Shell shell;
    shell.file("b.yaml", bench(std::string(", options: {") + option + "}", "x=time"));
    refused(shell, "b.yaml:10:64", "step 's': option '");
  }
  const Shell shell;
  shell.file("site.yaml",
             "platform:\n  name: site\n  options:\n    qos: low\n    time: \"10:00:00\"\n");
  shell.file("b.yaml", bench("", "", "site.yaml"));
  refused(shell, "site.yaml:5:5", "option 'time' has the meaning of the key 'time'");
  shell.file("b.yaml", bench("", "env: {SBATCH_TIMELIMIT: \"600\"}"));
  refused(shell, "b.yaml:9:9", "sbatch reads 'SBATCH_TIMELIMIT'");
  for (const char* name :
       {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NNODES", "SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV",
        "SRUN_CPUS_PER_TASK", "SRUN_CONTAINER", "SLURM_STDOUTMODE"}) {
    shell.file("b.yaml", bench("", std::string("env: {") + name + ": \"3\"}"));
    refused(shell, "b.yaml:9:9", std::string("srun reads '") + name + "'");
  }
  shell.file("site.yaml", "platform:\n  name: site\n  env:\n    SLURM_NTASKS: \"3\"\n");
  shell.file("b.yaml", bench("", "", "site.yaml"));
  refused(shell, "site.yaml:3:3", "srun reads 'SLURM_NTASKS'");
  std::string exported = bench("");
  exported.replace(exported.find("name: x"), 7, "name: SBATCH_ARRAY_INX, export: true");
  shell.file("b.yaml", exported);
  refused(shell, "b.yaml:3", "sbatch reads 'SBATCH_ARRAY_INX'");
}

TEST_CASE("options of schedulers that a table describes cannot contradict what the plan says") {
  const Shell shell;
  const auto says = [&](const char* scheduler, const char* resources, const char* message) {
    CAPTURE(resources);
    shell.file("b.yaml", bench(resources, "", scheduler));
    const Ran ran = shell.tally("validate b.yaml");
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, message), ran.err);
  };
  says("sge", ", memory: 8G, options: {l: mem_free=1G}",
       "option 'l: mem_free' has the meaning of the key 'memory'");
  says("flux", ", options: {cores: 9}",
       "option 'cores' has the meaning of the key 'cpus_per_task'");
  for (const char* option : {"bcc: 2", "wait: true", "watch: true", "dry-run: true"})
    says("flux", (std::string(", options: {") + option + "}").c_str(),
         "Tally sets itself or cannot");
  says("flux", ", memory: 8G", "memory '8G' cannot be asked of Flux");
}

// On this machine the program is launched in each cycle.
TEST_CASE("srun's variables under other names than their options, and with values of parameters") {
  const Shell shell;
  const char* const gpus = ", gpus_per_node: 2";
  for (const char* name : {"SLURM_STEP_GRES", "SLURM_GRES", "SLURM_GPUS", "SLURM_GPUS_PER_TASK"}) {
    const std::string message = std::string("srun reads '") + name + "', and option '";
    for (const char* value : {"gpu:1", "gres:gpu:1", "gres/gpu:1", "none"}) {
      CAPTURE(value);
      shell.file("b.yaml", bench(gpus, std::string("env: {") + name + ": '" + value + "'}"));
      refused(shell, "b.yaml:9:9", message);
    }
    // The values of a list are known when it is expanded.
    for (const char* set : {"1", "'0,1'"}) {
      std::string text = bench(gpus, std::string("env: {") + name + ": 'gpu:$g'}");
      text.insert(text.find("[{name: x") + 1, std::string("{name: g, _: ") + set + "}, ");
      shell.file("b.yaml", text);
      refused(shell, "b.yaml:9:9", message);
      text = bench(gpus);
      text.replace(text.find("name: x, separator: \"\", _: \"1\""), 30,
                   std::string("name: ") + name + ", export: true, _: 'gpu:$g'");
      text.insert(text.find("[{name: S") + 1, std::string("{name: g, _: ") + set + "}, ");
      shell.file("b.yaml", text);
      refused(shell, "b.yaml:3", message);
    }
  }
  for (const char* name : {"SLURM_REMOTE_CWD", "SLURM_WORKING_DIR"}) {
    shell.file("b.yaml", bench("", std::string("env: {") + name + ": /tmp}"));
    refused(shell, "b.yaml:9:9", std::string("srun reads '") + name + "'");
  }
  // Other resources, and a step that asks for no GPUs.
  shell.file("b.yaml", bench(gpus, "env: {SLURM_STEP_GRES: 'nvme:1'}"));
  CHECK(shell.tally("validate b.yaml").code == 0);
  shell.file("b.yaml", bench("", "env: {SLURM_STEP_GRES: 'gpu:1'}"));
  CHECK(shell.tally("validate b.yaml").code == 0);
}

TEST_CASE("a job is launched once, so that cycles are refused") {
  const Shell shell;
  for (const char* cycles : {"3", "$x"}) {
    CAPTURE(cycles);
    shell.file("b.yaml", bench("", std::string("cycles: ") + cycles));
    const bool one = cycles[0] == '$';
    if (one) CHECK(shell.tally("validate b.yaml").code == 0);
    if (!one)
      refused(shell, "b.yaml:9:11", "launched once, as a job, and not in each of its 3 cycles");
  }
  std::string two = bench("", "cycles: $x");
  two.replace(two.find("_: \"1\""), 6, "_: \"2\"");
  shell.file("b.yaml", two);
  refused(shell, "b.yaml:9:11", "not in each of its 2 cycles");
  shell.file("b.yaml", bench("", "cycles: 3", "local"));
  CHECK(shell.tally("validate b.yaml").code == 0);
}

TEST_CASE("a step's timeout is refused where a job launches the program") {
  const Shell shell;
  shell.file("b.yaml", bench("", "timeout: 3s"));
  refused(shell, "b.yaml:9:12", "'timeout' has no effect on a program that a job launches");
  shell.file("b.yaml", bench("", "timeout: 3s", "local"));
  CHECK(shell.tally("validate b.yaml").code == 0);
}

TEST_CASE("a platform's durations are refused as those of a step are") {
  for (const char* key :
       {"time", "pending_limit", "submit_patience", "poll_slowest", "status_grace", "max_time"}) {
    for (const auto& [value, good] : {std::pair{"400000d", false},
                                      {"40000000000", false},
                                      {"5 parsecs", false},
                                      {"1-0", true},
                                      {"99999d", true}}) {
      CAPTURE(std::string(key) + ": " + value);
      const Shell shell;
      shell.file("site.yaml", std::string("platform: {name: site, template: slurm, ") + key +
                                  ": '" + value + "'}\n");
      shell.file("b.yaml",
                 "name: b\noutpath: run\nstep: {name: s, kind: run, platform: site.yaml, launch: "
                 "echo}\n");
      CHECK(shell.tally("validate b.yaml").code == (good ? 0 : 2));
    }
  }
  // Slurm would take it for no limit.
  for (const char* time : {"0", "0:00", "0-0", "$none"}) {
    CAPTURE(std::string(time));
    const Shell shell;
    shell.file("site.yaml",
               std::string("platform: {name: site, template: slurm, time: '") + time + "'}\n");
    for (const std::string own : {"", "resources: {time: 5m}, "}) {
      shell.file("b.yaml",
                 "name: b\noutpath: run\nparameterset: {name: q, parameter: {name: none, _: 0}}\n"
                 "step: {name: s, kind: run, use: q, platform: site.yaml, " +
                     own + "launch: echo}\n");
      const Ran ran = shell.tally("validate b.yaml");
      CHECK_MESSAGE(ran.code == (own.empty() ? 2 : 0), ran.err);
      CHECK_MESSAGE(has(ran.err, "time is 0, but a job's time limit is above 0") == own.empty(),
                    ran.err);
    }
  }
}

TEST_CASE("a text with a line break adds no line to a job script") {
  for (const char* key :
       {"options: {qos: \"a\\nb\"}", "account: \"a\\nb\"", "partition: \"a\\n#SBATCH -N9\"",
        "memory: \"4\\nG\"", "account: $x", "options: {qos: $x}", "hint: \"a\\tb\""}) {
    CAPTURE(key);
    const Shell shell;
    shell.file("b.yaml", bench(std::string(", ") + key, "x=a\\nb"));
    refused(shell, "b.yaml:10", "has a line break or another control character");
  }
  const Shell shell;
  for (const char* key :
       {"partition", "account", "memory", "hint", "signal", "mpi", "tmp", "cache"}) {
    CAPTURE(key);
    shell.file("site.yaml", std::string("platform:\n  name: site\n  ") + key + ": \"a\\nb\"\n");
    shell.file("b.yaml", bench("", "", "site.yaml"));
    refused(shell, "site.yaml:3", "has a line break or another control character");
  }
  shell.file("site.yaml", "platform:\n  name: site\n  options: {qos: $x}\n");
  shell.file("b.yaml", bench("", "x=a\\nb", "site.yaml"));
  refused(shell, "site.yaml:3", "has a line break or another control character");
  shell.file("b.yaml", bench("", "", "slurm", "\"a\\nb\""));
  refused(shell, "b.yaml:1:7", "has a line break or another control character");
}

// sbatch 22.05 was asked for each of them.
namespace {

std::string to_script_in_words(const std::string& signal) {
  if (has(signal, "B:") || has(signal, "b:") || has(signal, "BR:")) return signal;
  return has(signal, ":") ? "B" + signal : "B:" + signal;
}

}  // namespace

TEST_CASE("a limit of node-hours is a number") {
  const Shell shell;
  shell.file("b.yaml", bench("", "", "slurm"));
  for (const char* limit : {"nan", "-nan", "inf", "1h", "-1", ""}) {
    CAPTURE(limit);
    const Ran ran = shell.tally(std::string("run b.yaml -n --max-node-hours '") + limit + "'");
    CHECK_MESSAGE(ran.code == 2, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, std::string("'") + limit + "' is not a number of at least 0"),
                  ran.err);
  }
  for (const char* limit : {"0.5", "1e3", "20"})
    CHECK(shell.tally(std::string("run b.yaml -n --max-node-hours ") + limit).code == 0);
}

TEST_CASE("memory, hint and signal are what sbatch reads") {
  struct Value {
    const char* key;
    std::vector<const char*> taken, refused;
  };
  const Value values[] = {
      {"memory",
       {"4", "4G", "4g", "4GB", "4gb", "4K", "4T", "0", "00", "+4", " 4G"},
       {"4Gi", "4GiB", "4P", "4 G", "4.5G", "1e3", "-4G", "4G --nodes=4", "lots", "0x10", "4M4",
        "G", "B", "5000000000000000000000", "9223372036854775808G"}},
      {"hint",
       {"compute_bound", "memory_bound", "multithread", "nomultithread", "NOMULTITHREAD",
        "nomultithread,memory_bound"},
       {"foo", "help", "nomulti", "nomultithread --nodes=4"}},
      {"signal",
       {"TERM", "TERM@60", "B:TERM@60", "R:TERM@60", "RB:TERM@60", "BR:USR1@60", "b:usr1@60",
        "SIGTERM@60", "10", "10@60", "HUP", "XCPU"},
       {"TERM@60s", "TERM@1m", "TERM@70000", "TERM@-1", "X:TERM", "FOO", "0", "B:TERM@60 --nodes=5",
        "B:", "RTMIN", "WINCH", "KILL@60", "B:9@60", "SIGSTOP", "19"}},
  };
  const Shell shell;
  for (const auto& [key, taken, refused_ones] : values) {
    for (const bool good : {true, false}) {
      for (const std::string value : good ? taken : refused_ones) {
        const bool of_platform = std::string(key) == "signal";
        CAPTURE(key);
        CAPTURE(value);
        shell.file("site.yaml", "platform:\n  name: site\n  scheduler: slurm\n  signal: \"" +
                                    (of_platform ? value : "B:TERM@60") + "\"\n");
        for (const bool parameter : {false, true}) {
          if (of_platform && parameter) continue;
          const std::string own = parameter ? "$x" : "\"" + value + "\"";
          shell.file("b.yaml", bench(of_platform ? "" : std::string(", ") + key + ": " + own,
                                     parameter ? "x=" + value : "", "site.yaml"));
          const Ran ran = shell.tally("run -n b.yaml");
          CHECK_MESSAGE(ran.code == (good ? 0 : 2), (ran.out + ran.err));
          // Slurm tells the job's script, which tells the program: to_script() in steps/.
          if (good && of_platform) {
            const Ran script = shell.tally("run -n b.yaml --script 0");
            CHECK_MESSAGE(has(script.out, "#SBATCH --signal=" + to_script_in_words(value) + "\n"),
                          script.out);
          }
          if (!good) CHECK_MESSAGE(has(ran.err, "'" + value + "' is "), ran.err);
        }
      }
    }
  }
}

TEST_CASE("names and values with blanks and quotes are words of the job script") {
  const Shell shell;
  shell.file("b.yaml",
             bench(", account: \"it's #1\", partition: 'a\"b', options: {exclusive: true, "
                   "contiguous: false, comment: two words, requeue: $x}",
                   "x=true", "slurm", "\"my bench\""));
  CHECK(shell.tally("validate b.yaml").code == 0);
  const Ran ran = shell.tally("run b.yaml -n --script 0");
  for (const char* line : {"#SBATCH --job-name=\"my bench.s\"\n", "#SBATCH --account=\"it's #1\"\n",
                           "#SBATCH --partition=\"a\\\"b\"\n", "#SBATCH --exclusive\n",
                           "#SBATCH --comment=\"two words\"\n", "#SBATCH --requeue\n"})
    CHECK_MESSAGE(has(ran.out, line), ran.out);
  CHECK_FALSE(has(ran.out, "contiguous"));
}

TEST_CASE("a step on this machine says once that it does not use the nodes and tasks it asks for") {
  struct Row {
    const char* resources;
    const char* launch;
    const char* note;  // "": none
  };
  const Row rows[] = {
      {"nodes: 4", "hostname", "asks for up to 4 nodes and 4 tasks"},
      {"nodes: $n", "hostname", "asks for up to 8 nodes and 8 tasks"},
      {"nodes: 2, tasks_per_node: 3", "hostname", "asks for up to 2 nodes and 6 tasks"},
      {"tasks_per_node: 3", "hostname", "asks for up to 3 tasks"},
      {"nodes: 2", "env T=$tasks hostname", "asks for up to 2 nodes, and"},
      {"tasks_per_node: 3", "env T=${tasks} hostname", ""},
      {"nodes: $n", "env T=$n hostname", "asks for up to 8 nodes, and"},
      {"tasks_per_node: $n", "env T=$n hostname", ""},
      {"nodes: 1, tasks_per_node: 1", "hostname", ""},
  };
  for (const Row& row : rows) {
    for (const char* platform : {"", "platform: local, "}) {
      CAPTURE(row.resources);
      const Shell shell;
      shell.file(
          "b.yaml",
          std::string("name: b\noutpath: runs\n"
                      "parameterset: {name: p, parameter: {name: n, type: int, _: \"1,8\"}}\n"
                      "step: {name: s, kind: run, use: p, ") +
              platform + "resources: {" + row.resources + "}, launch: \"" + row.launch + "\"}\n");
      const Ran ran = shell.tally("run b.yaml");
      CHECK(ran.code == 0);
      if (*row.note == '\0') {
        CHECK_MESSAGE(!has(ran.err, "this machine"), ran.err);
        continue;
      }
      CHECK_MESSAGE(has(ran.err, row.note), ran.err);
      CHECK(has(ran.err, "b.yaml:4:"));
      CHECK(ran.err.find("this machine") == ran.err.rfind("this machine"));
      CHECK(has(shell.tally("run b.yaml -n").err, row.note));
      CHECK(shell.tally("validate --strict b.yaml").code == 0);
    }
  }
  // Also of commands in `do`, and of numbers that the platform's file gives.
  const Shell shell;
  shell.file("mine.yaml", "platform: {name: mine, scheduler: local, tasks_per_node: 4}\n");
  for (const auto& [step, note] :
       {std::pair{"resources: {nodes: 2, tasks_per_node: 2}, do: hostname",
                  "asks for up to 2 nodes and 4 tasks"},
        {"resources: {tasks_per_node: 2}, do: [hostname, env T=$tasks hostname]", ""},
        {"platform: mine.yaml, launch: hostname", "asks for up to 4 tasks"},
        {"platform: mine.yaml, launch: env T=$tasks hostname", ""},
        {"launch: hostname", ""}}) {
    CAPTURE(std::string(step));
    shell.file("b.yaml",
               "name: b\noutpath: runs\nstep: {name: s, kind: run, " + std::string(step) + "}\n");
    const Ran ran = shell.tally("run -n b.yaml");
    CHECK(ran.code == 0);
    CHECK_MESSAGE(has(ran.err, "runs on this machine") == !std::string(note).empty(), ran.err);
    CHECK_MESSAGE(has(ran.err, note), ran.err);
  }
}

// A script has the folders of a site in quotes. Quotes of their own would belong to the name.
TEST_CASE("a site's tmp and cache are written without quotes") {
  for (const char* line : {"cache: \"'$HOME/my cache'\"", "cache: \"\\\"$HOME/c\\\"\"",
                           "tmp: \"/scratch/my\\\\ tmp\"", "tmp: '/scratch/`id -un`'"}) {
    CAPTURE(line);
    const Shell shell;
    shell.file("site.yaml",
               std::string("platform:\n  name: site\n  scheduler: slurm\n  ") + line + "\n");
    shell.file("b.yaml", bench("", "", "site.yaml"));
    refused(shell, "site.yaml:4", "names a folder with quotes or backslashes");
  }
  const Shell shell;
  shell.file("site.yaml", "platform:\n  name: site\n  scheduler: slurm\n  cache: $HOME/my cache\n");
  shell.file("b.yaml", bench("", "", "site.yaml"));
  const Ran ran = shell.tally("run b.yaml -n --script 0");
  CHECK_MESSAGE(has(ran.out, "\"${HOME:?}/my cache\""), (ran.out + ran.err));
}

// A job and a container are those of the launch line.
TEST_CASE("a run step's commands without a launch line are submitted by nobody, and that is said") {
  const char* const no_job =
      "warning: step 's' has no `launch`: its commands run on this machine, and nothing is "
      "submitted (platform slurm)";
  const char* const no_container =
      "warning: step 's' has no `launch`: its commands run on this machine, and its container is "
      "not used";
  const struct {
    const char *keys, *says;
  } cases[] = {
      {"platform: slurm, resources: {nodes: 4}, do: 'true'", no_job},
      {"platform: slurm, resources: {nodes: 4}, container: {image: x.sif}, do: 'true'", no_job},
      {"container: {image: x.sif}, do: 'true'", no_container},
      {"resources: {nodes: 4}, do: 'true'", "note: step 's' asks for up to 4 nodes"},
      {"platform: slurm, do: 'test -n \"$submit\"'", nullptr},  // submits by itself
      {"platform: slurm, launch: 'true', do: 'true'", nullptr},
      {"do: 'true'", nullptr},
  };
  for (const auto& [keys, says] : cases) {
    CAPTURE(keys);
    const Shell shell;
    shell.file("b.yaml",
               std::string("name: b\noutpath: runs\nstep: {name: s, kind: run, ") + keys + "}\n");
    for (const char* command : {"validate b.yaml", "run b.yaml -n"}) {
      const Ran ran = shell.tally(command);
      CHECK(ran.code == 0);
      CHECK_MESSAGE(has(ran.err, says == nullptr ? "" : says), ran.err);
      if (says == nullptr) CHECK_MESSAGE(!has(ran.err, "`launch`"), ran.err);
      CHECK(has(ran.err, "asks for up to") == (says != nullptr && says[0] == 'n'));
    }
  }
}
