// A site's `platform` and the step that goes there.
#include "tests/engine/check/checked.h"

using namespace tally;

namespace {

const std::string kTemplate =
    "parameterset:\n"
    "  - name: systemParameter\n"
    "    parameter: [{name: queue, _: ''}, {name: account, _: none}, {name: site_env, _: ''},\n"
    "      {name: threadspertask, type: int, _: 1}]\n"
    "  - {name: executeset, parameter: [{name: scheduler, _: slurm}, {name: starter, _: srun}]}\n"
    "fileset: {name: jobfiles, copy: submit.job.in}\n"
    "substituteset: {name: executesub, iofile: {in: submit.job.in, out: submit.job}}\n";

Checked with_site(const std::string& site, const std::string& platform = "platform: site",
                  std::vector<std::string> tags = {}) {
  const std::string step = "name: b\noutpath: o\nstep:\n  name: s\n  kind: run\n  launch: prog\n  ";
  return Checked("d/f.yaml",
                 Files{{"d/f.yaml", step + platform + "\n"},
                       {"d/site.yaml", site},
                       {"d/other.yaml", "platform: {name: other, partition: far}\n"},
                       {"d/slurm/platform.yaml", kTemplate},
                       {"d/pbs/platform.yaml", kTemplate}},
                 with_tags(std::move(tags)));
}

std::string value(const Checked& checked, const std::string& set, const std::string& name) {
  for (const Parameter& p : checked.set(set).parameters) {
    if (p.name.value == name) return p.value.value;
  }
  return "(none)";
}

}  // namespace

TEST_CASE("a site's keys are values of the template's sets") {
  Checked checked = with_site(
      "platform:\n"
      "  name: big\n  partition: gpu\n  cpus_per_task: 12\n  launcher: none\n  mpi: pmix\n"
      "  signal: none\n  modules: [GCC, CUDA/12]\n  max_node_hours: 40\n"
      "  env: {A: 'x \"y\" $HOME'}\n  interconnect: {NCCL_SOCKET_IFNAME: 'ib0,ib1'}\n"
      "  options: {qos: low, exclusive: ''}\n");
  CHECK(checked.messages() == "");
  const Step& step = checked.benchmark().steps.at(0);
  REQUIRE(step.use.size() == 4);
  CHECK(step.use[0].value == "systemParameter@site");
  CHECK(value(checked, "systemParameter@site", "queue") == "gpu");
  CHECK(value(checked, "systemParameter@site", "account") == "none");  // the template's
  CHECK(value(checked, "systemParameter@site", "signal") == "");
  CHECK(value(checked, "systemParameter@site", "site_modules") == "module load GCC CUDA/12");
  CHECK(value(checked, "systemParameter@site", "site_variables") == "A=x \"y\" \\dHOME");
  CHECK(value(checked, "systemParameter@site", "site_interconnect_variables") ==
        "NCCL_SOCKET_IFNAME=ib0,ib1");
  CHECK(value(checked, "systemParameter@site", "site_option_1") == "qos=low");
  CHECK(value(checked, "systemParameter@site", "site_option_2") == "exclusive=");
  CHECK(value(checked, "executeset@site", "starter") == "");
  CHECK(value(checked, "executeset@site", "site_mpi") == "--mpi=pmix");
  CHECK(value(checked, "executeset@site", "max_node_hours") == "40");
  for (const Parameter& p : checked.set("systemParameter@site").parameters) {
    if (p.name.value == "threadspertask") CHECK(p.type == ValueType::integer);
    // A comma in a site's value does not span a parameter space.
    if (p.name.value == "site_interconnect_variables") CHECK(p.separator == "");
  }
  CHECK(checked.benchmark().file_sets.at("jobfiles@site").entries.size() == 1);
  CHECK(checked.benchmark().substitute_sets.at("executesub@site").files.size() == 1);
}

TEST_CASE("how jobs are submitted and followed is a site's to say") {
  Checked checked = with_site(
      "platform: {name: p, jobs_in_flight: 200, submit_rate: 5, submit_patience: 2h, "
      "poll_slowest: 60, status_grace: 2m, pending_limit: 12h, resubmit: 0, "
      "job_environment: 'HOME, MY_*'}\n");
  CHECK(checked.messages() == "");
  const std::pair<const char*, const char*> given[] = {
      {"jobs_in_flight", "200"}, {"submit_rate", "5"},
      {"submit_patience", "2h"}, {"poll_slowest", "60"},
      {"status_grace", "2m"},    {"pending_limit", "12h"},
      {"resubmit", "0"},         {"job_environment", "HOME, MY_*"}};
  for (const auto& [name, expected] : given) {
    CHECK(value(checked, "executeset@site", name) == expected);
  }
}

TEST_CASE("a template that is not there is shown where it is named") {
  Checked checked = with_site("platform:\n  name: p\n  template: sites/none.yaml\n");
  CHECK(checked.messages().find("d/site.yaml:3:13: error: file 'sites/none.yaml' not found") !=
        std::string::npos);
}

TEST_CASE("a container's keys, and one that needs an image") {
  Checked checked = with_site(
      "platform: {name: p, container: {runtime: docker, image: a/b, bind: [/x, '/y:/z'],\n"
      "  env: {K: v}}}\n");
  CHECK(value(checked, "systemParameter@site", "container_runtime") == "docker");
  CHECK(value(checked, "systemParameter@site", "container_bind") == "/x,/y:/z");
  CHECK(value(checked, "systemParameter@site", "container_env") == "K=v");
  CHECK(with_site("platform: {name: p, container: {gpus: all}}\n")
            .says("d/site.yaml:1:21: error: the platform's container has no image"));
}

TEST_CASE("what a site's file may not hold, with the nearest that it may") {
  Checked checked = with_site("platform:\n  name: big\n  acount: me\n  partition: gpu\n");
  CHECK(checked.says("d/site.yaml:3:3: error: unknown key 'acount' in platform 'big'"));
  CHECK(checked.says("did you mean 'account'?"));
  CHECK(with_site("platform: {name: p, scheduler: slurmm}\n").says("did you mean 'slurm'?"));
  // Nothing is like it: the schedulers that there are. The sets that are missing for it are not told.
  checked = with_site("platform: {name: p, scheduler: torque}\n");
  CHECK(checked.says("; schedulers: "));
  CHECK_FALSE(checked.says("no set"));
  CHECK(with_site("platform: {name: p, queue: q}\n").says("did you mean 'partition'?"));
  CHECK(with_site("", "resources: {ncpus: 4}").says("did you mean 'cpus_per_task'?"));
  CHECK(with_site("", "resources: {mpiprocs: 4}").says("did you mean 'tasks_per_node'?"));
  CHECK(with_site("platform: {partition: p}\n").says("this platform has no 'name'"));
  CHECK(with_site("platform: {name: p, container: {imag: x}}\n").says("did you mean 'image'?"));
}

TEST_CASE("platforms are chosen by tag, in the workflow and in a site's file") {
  const std::string both = "platform: [{tag: '!far', _: site}, {tag: far, _: other.yaml}]";
  const std::string site =
      "platform: [{name: a, tag: big, partition: p1}, {name: b, tag: '!big', partition: p2}]\n";
  CHECK(value(with_site(site, both), "systemParameter@site", "queue") == "p2");
  CHECK(value(with_site(site, both, {"big"}), "systemParameter@site", "queue") == "p1");
  CHECK(value(with_site(site, both, {"far"}), "systemParameter@other.yaml", "queue") == "far");
  CHECK(with_site("platform: [{name: a}, {name: b}]\n")
            .says("d/site.yaml:1:24: error: a file describes one platform"));
  CHECK(with_site(site, "platform: [site, other]").says("error: step 's' has two platforms"));
  const std::string two =
      "platform: site\n  resources: [{tag: '!wide', nodes: 1}, {tag: wide|deep, nodes: 2}]";
  CHECK(with_site(site, two).messages() == "");
  CHECK(with_site(site, two, {"wide"}).messages() == "");
  CHECK(with_site(site, two, {"deep"})
            .says("d/f.yaml:8:42: error: step 's' has two lists of resources"));
}

TEST_CASE("a platform is found by its name") {
  Checked shipped = with_site("", "platform: slurm");
  CHECK(shipped.messages() == "");
  CHECK(value(shipped, "systemParameter@slurm", "account") == "none");
  CHECK(with_site("", "platform: nowhere").says("file 'nowhere' not found"));
  CHECK(with_site("platform: {name: p, template: 'nix.yaml'}\n").says("file 'nix.yaml' not found"));
}

TEST_CASE("platform and container are for run steps") {
  Checked checked("name: b\nstep: {name: s, do: x, container: {image: i}}\n");
  CHECK(checked.says("error: 'container' in step 's' needs kind: run"));
}
