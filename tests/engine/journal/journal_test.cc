// The journal: what is written is there, whoever is killed; who writes is known; what goes wrong is
// said.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/journal/journal.h"
#include "engine/journal/lease.h"
#include "tests/support/suites.h"

using namespace tally;

namespace {

class Folder {
 public:
  Folder() {
    path_ = "/tmp/tally-journal-test-XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
    std::filesystem::create_directory(path_ + "/000003");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::permissions(run(), std::filesystem::perms::all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string run() const { return path_ + "/000003"; }

 private:
  std::string path_;
};

RunRecord a_run() {
  RunRecord run;
  run.id = 3;
  run.benchmark = "b";
  run.comment = "a comment";
  run.tags = {"gpu", "13"};
  run.input_file = "bench.yaml";
  run.start = "2026-11-21T01:18:53";
  run.home = "/home/x";
  run.set = {{"nodes", "4"}, {"odd", "a=b"}};
  run.include_path = {"/inc", "relative"};
  run.directory = "/home/x/suite";
  run.directory_from_run = "../..";
  return run;
}

std::unique_ptr<Journal> create(const Folder& folder) {
  Sources sources;
  sources.add("bench.yaml", "name: b\n");
  sources.add("inc.yaml", std::string("\xff\0x", 3));
  std::unique_ptr<Journal> journal;
  const Status s = Journal::create(folder.run(), a_run(), sources, &journal);
  CAPTURE(s.message());
  REQUIRE(s);
  return journal;
}

Workpackage workpackage(int id, TextPool& pool, const std::string& value) {
  Workpackage wp;
  wp.id = id;
  wp.step = 1;
  wp.iteration = 2;
  wp.parents = {7, 5};
  wp.point.bindings.push_back({pool.intern("p"), pool.intern(value), 4, 0});
  wp.point.bindings.push_back({pool.intern("empty"), pool.intern(""), 0, 0});
  return wp;
}

std::vector<Journal::Stored> workpackages(const Journal& journal) {
  std::vector<Journal::Stored> all;
  const Status read = journal.workpackages(&all);
  CAPTURE(read.message());
  CHECK(read);
  return all;
}

std::vector<Journal::Tally> states(const Journal& journal) {
  std::vector<Journal::Tally> all;
  CHECK(journal.states(&all));
  return all;
}

// Runs `body` in a process of its own and returns how that ended.
template <typename Body>
int in_child(Body body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("everything written is read back") {
  Folder folder;
  TextPool pool;
  {
    auto journal = create(folder);
    REQUIRE(journal->add(workpackage(0, pool, "v\n\xff"), pool,
                         {{"ps/p", "ps/empty"}, "gen", "000000_gen", ""}));
    REQUIRE(journal->add(workpackage(1, pool, "w"), pool,
                         {{"ps/p", "ps/empty"}, "gen", "000001_gen", "/alt"}));
    REQUIRE(journal->set_outcome(0, in_state(State::running)));
    REQUIRE(journal->operation_done(0, 1, 2, {"A=b=c", "GONE", "L=1\n2"}, {{"/x/stdout", 123}}));
    REQUIRE(journal->set_outcome(0, failure(Reason::value, "why")));
    REQUIRE(journal->jobs_named({{1, "tally-1"}}));
    REQUIRE(journal->job_submitted(1, "4711"));
    REQUIRE(journal->set_setup({1, "hash", "instance"}));
    REQUIRE(journal->set_update(
        {"../new.yaml", {"more", "b"}, {{"new.yaml", "name: new\n"}, {"inc.yaml", ""}}}));
  }
  std::unique_ptr<Journal> journal;
  REQUIRE(Journal::open(folder.run(), &journal));
  const RunRecord& run = journal->run();
  CHECK(run.id == 3);
  CHECK(run.tags == a_run().tags);
  CHECK(run.set == a_run().set);
  CHECK(run.start == a_run().start);
  CHECK(run.include_path == a_run().include_path);
  CHECK(run.directory == a_run().directory);
  CHECK(run.directory_from_run == a_run().directory_from_run);
  Journal::Texts texts;
  REQUIRE(journal->sources(&texts));
  CHECK(texts ==
        Journal::Texts{{"bench.yaml", "name: b\n"}, {"inc.yaml", std::string("\xff\0x", 3)}});
  const auto stored = workpackages(*journal);
  REQUIRE(stored.size() == 2);
  CHECK(stored[0].step == "gen");
  CHECK(stored[0].workpackage.outcome.state == State::failed);
  CHECK(message(stored[0].workpackage.outcome) == "why");
  CHECK(stored[0].workpackage.parents == std::vector<int>{7, 5});
  CHECK(stored[0].workpackage.iteration == 2);
  CHECK(stored[0].workpackage.cycle == 1);
  CHECK(stored[0].operations_done == 3);
  CHECK(stored[0].prepared);
  CHECK(stored[0].parameters ==
        std::vector<std::pair<std::string, std::string>>{{"p", "v\n\xff"}, {"empty", ""}});
  CHECK(stored[0].definitions == std::vector<std::string>{"ps/p", "ps/empty"});
  CHECK(stored[0].index == std::vector<uint32_t>{4, 0});
  CHECK(stored[0].environment == std::vector<std::string>{"A=b=c", "GONE", "L=1\n2"});
  CHECK(stored[0].outputs == OutputSizes{{"/x/stdout", 123}});
  CHECK(stored[0].started > 0);
  CHECK(stored[0].ended >= stored[0].started);
  CHECK(stored[1].work_dir == "/alt");
  CHECK(stored[1].job_name == "tally-1");
  CHECK(stored[1].job_id == "4711");
  std::vector<Journal::Setup> setups;
  REQUIRE(journal->setups(&setups));
  REQUIRE(setups.size() == 1);
  CHECK(setups[0].workpackage == 1);
  CHECK(setups[0].hash == "hash");
  CHECK(setups[0].instance == "instance");
  Journal::Update update;
  REQUIRE(journal->update(&update));
  CHECK(update.file == "../new.yaml");
  CHECK(update.tags == std::vector<std::string>{"more", "b"});
  CHECK(update.texts == Journal::Texts{{"new.yaml", "name: new\n"}, {"inc.yaml", ""}});
  // Version 0.2.0 kept no tags: then those of the run count.
  REQUIRE(journal->set_update({"../new.yaml", {}, {{"new.yaml", "name: new\n"}}}));
  REQUIRE(journal->update(&update));
  CHECK(update.tags == a_run().tags);
  CHECK(update.texts.size() == 1);
  REQUIRE(states(*journal).size() == 2);
  CHECK(states(*journal)[0].count == 1);
  REQUIRE(journal->reset(0));
  CHECK(workpackages(*journal)[0].workpackage.outcome.state == State::pending);
  CHECK(workpackages(*journal)[0].operations_done == 0);
}

TEST_CASE("a path may lead above the root, where it stays") {
  Folder folder;
  create(folder).reset();
  const std::string above = "/../.." + folder.run();
  std::unique_ptr<Journal> journal;
  REQUIRE(Journal::open(above, &journal));
}

TEST_CASE("what is known of an attempt is forgotten with it") {
  Folder folder;
  TextPool pool;
  std::map<int, Disturbance> disturbances;
  std::map<int, JobUse> uses;
  {
    auto journal = create(folder);
    for (const int id : {0, 1, 2}) {
      const std::string name = "00000" + std::to_string(id) + "_gen";
      REQUIRE(
          journal->add(workpackage(id, pool, "v"), pool, {{"ps/p", "ps/empty"}, "gen", name, ""}));
    }
    REQUIRE(journal->set_disturbance(0, {1.5, "GPU 0: process 7 (x)", ""}));
    REQUIRE(journal->set_disturbance(0, {0.75, "", "GPU 0: thermal slowdown"}));
    REQUIRE(journal->set_disturbance(1, {2.5, "", ""}));
    JobUse use;
    use.nodes = "node[1-2]";
    REQUIRE(journal->set_job_use(0, use));
    REQUIRE(journal->set_job_use(1, use));
    use = {"", 12.0, {}, 3.5, "why"};
    REQUIRE(journal->set_job_use(0, use));
  }
  std::unique_ptr<Journal> journal;
  REQUIRE(Journal::open(folder.run(), &journal));
  REQUIRE(journal->disturbances(&disturbances));
  REQUIRE(disturbances.size() == 2);
  CHECK(disturbances[0].cores == 0.75);
  CHECK(disturbances[0].gpu_users.empty());
  CHECK(disturbances[0].throttling.str() == "GPU 0: thermal slowdown");
  REQUIRE(journal->job_uses(&uses));
  CHECK(uses[0].nodes == "node[1-2]");  // what is not known any more is kept
  CHECK(uses[0].seconds == 12.0);
  CHECK(!uses[0].joules);
  CHECK(uses[0].max_rss == 3.5);
  CHECK(uses[0].why == "why");
  REQUIRE(journal->reset(0));
  REQUIRE(journal->remove(1));
  REQUIRE(journal->disturbances(&disturbances));
  REQUIRE(journal->job_uses(&uses));
  CHECK(disturbances.empty());
  CHECK(uses.empty());
}

TEST_CASE("a second engine is told who has the run, in the same process and in another" *
          doctest::test_suite(tally::testing::kSeesProcesses)) {
  Folder folder;
  auto journal = create(folder);
  const std::string expected = "run 000003 is in use by tally on host";
  std::unique_ptr<Journal> second;
  Status s = Journal::open(folder.run(), &second);
  CHECK_FALSE(s);
  CHECK(s.message().rfind(expected, 0) == 0);
  CHECK(s.message().find("process " + std::to_string(getpid()) + ", since 20") !=
        std::string::npos);
  const int status = in_child([&] {
    std::unique_ptr<Journal> other;
    const Status refused = Journal::open(folder.run(), &other);
    if (refused || refused.message().rfind(expected, 0) != 0) _exit(1);
  });
  CHECK(status == 0);
  // The one that was refused has taken nothing away.
  CHECK(journal->set_setup({1, "k", "v"}));
  CHECK(Lease::live_holder(folder.run() + "/journal.lease"));
  journal.reset();
  CHECK(Journal::open(folder.run(), &second));
}

TEST_CASE("killed at every commit: what was committed is there, the lease is taken over") {
  for (int kill_at = 0; kill_at < 6; ++kill_at) {
    for (const bool after : {false, true}) {
      Folder folder;
      const int status = in_child([&] {
        TextPool pool;
        auto journal = create(folder);
        journal->on_commit([&](int number, bool done) {
          if (number == kill_at && done == after) raise(SIGKILL);
        });
        for (int i = 0; i < 6; ++i) {
          if (!journal->add(workpackage(i, pool, "v"), pool, {{}, "s", "d", ""})) _exit(2);
        }
      });
      REQUIRE(WIFSIGNALED(status));
      // A reader first: it may not write to the folder.
      std::unique_ptr<Journal> journal;
      const Status read = Journal::open_read_only(folder.run(), &journal);
      CAPTURE(read.message());
      REQUIRE(read);
      const auto expected = static_cast<size_t>(kill_at) + (after ? 1U : 0U);
      CHECK(workpackages(*journal).size() == expected);
      const Status open = Journal::open(folder.run(), &journal);
      CAPTURE(open.message());
      REQUIRE(open);
      CHECK(workpackages(*journal).size() == expected);
    }
  }
}

TEST_CASE("between begin and commit all or nothing is kept") {
  Folder folder;
  const int status = in_child([&] {
    TextPool pool;
    auto journal = create(folder);
    if (!journal->begin()) _exit(2);
    for (int i = 0; i < 100; ++i) {
      if (!journal->add(workpackage(i, pool, "v"), pool, {{}, "s", "d", ""})) _exit(2);
    }
    raise(SIGKILL);
  });
  REQUIRE(WIFSIGNALED(status));
  std::unique_ptr<Journal> journal;
  REQUIRE(Journal::open(folder.run(), &journal));
  CHECK(workpackages(*journal).empty());
}

TEST_CASE("a transaction within another is a part of it, and one that fails leaves nothing") {
  Folder folder;
  TextPool pool;
  auto journal = create(folder);
  const auto add = [&](int id) {
    return journal->add(workpackage(id, pool, "v"), pool, {{}, "s", "d", ""});
  };
  const Status failed = journal->transaction([&] {
    const Status added = add(0);
    return added ? Status::error("no more") : added;
  });
  CHECK(failed.message() == "no more");
  CHECK(workpackages(*journal).empty());
  // What follows is not a part of it.
  REQUIRE(journal->transaction([&] { return add(1); }));
  CHECK(workpackages(*journal).size() == 1);
  int commits = 0;
  journal->on_commit([&](int, bool done) { commits += done ? 1 : 0; });
  REQUIRE(journal->begin());
  REQUIRE(journal->transaction([&] { return add(2); }));
  REQUIRE(journal->reset(2));
  REQUIRE(journal->set_run(journal->run()));
  REQUIRE(journal->transaction([&] { return add(3); }));
  CHECK(commits == 0);
  REQUIRE(journal->commit());
  CHECK(commits == 1);
  CHECK(workpackages(*journal).size() == 3);
}

TEST_CASE("readers work beside a writing engine and leave nothing behind") {
  Folder folder;
  TextPool pool;
  auto journal = create(folder);
  REQUIRE(journal->add(workpackage(0, pool, "v"), pool, {{}, "s", "d", ""}));
  std::unique_ptr<Journal> reader;
  REQUIRE(Journal::open_read_only(folder.run(), &reader));
  CHECK(reader->run().benchmark == "b");
  // The writer leaves a snapshot at a commit half a second after its start, then every second.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  size_t seen = 0;
  while (seen == 0 && std::chrono::steady_clock::now() < limit) {
    REQUIRE(journal->set_setup({1, "k", "v"}));
    REQUIRE(Journal::open_read_only(folder.run(), &reader));
    seen = workpackages(*reader).size();
  }
  CHECK(seen == 1);
  reader.reset();
  journal.reset();
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.run()))
    ++files;
  CHECK(files == 1);  // journal.sqlite
}

TEST_CASE("a lease of a dead process, of a reused pid, of another host") {
  Folder folder;
  create(folder).reset();
  const std::string lease = folder.run() + "/journal.lease";
  char host[256] = {};
  REQUIRE(gethostname(host, sizeof host - 1) == 0);
  std::unique_ptr<Journal> journal;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const std::string name_space = std::filesystem::read_symlink("/proc/self/ns/pid");
  std::ofstream(lease) << host << "\n999999999\n"
                       << boot << "/1\n2026-11-21 01:00:00\n"
                       << name_space << "\n";
  CHECK(Journal::open(folder.run(), &journal));
  journal.reset();
  std::ofstream(lease) << host << "\n"
                       << getpid() << "\n"
                       << boot << "/1\n2026-11-21 01:00:00\n"
                       << name_space << "\n";
  CHECK(Journal::open(folder.run(), &journal));
  journal.reset();
  std::ofstream(lease) << host << "\n" << getpid() << "\nanother-boot/1\n2026-11-21 01:00:00\n";
  // A machine of the same name, or this one before it was started anew: its age decides.
  CHECK_FALSE(Journal::open(folder.run(), &journal));
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(utimensat(AT_FDCWD, lease.c_str(), old, 0) == 0);
  CHECK(Journal::open(folder.run(), &journal));
  journal.reset();
  std::ofstream(lease) << "elsewhere\n12\nboot/1\n2026-11-21 01:00:00\n";
  const Status s = Journal::open(folder.run(), &journal);
  CHECK_FALSE(s);
  CHECK(s.message() ==
        "run 000003 is in use by tally on host elsewhere, process 12, since 2026-11-21 01:00:00; "
        "wait for "
        "it to end, or end it, then continue");
  // Not renewed for long: dead.
  REQUIRE(utimensat(AT_FDCWD, lease.c_str(), old, 0) == 0);
  CHECK(Journal::open(folder.run(), &journal));
}

TEST_CASE("what is wrong with a journal is one sentence") {
  Folder folder;
  std::unique_ptr<Journal> journal;
  Status s = Journal::open(folder.run(), &journal);
  CHECK(s.message() == folder.run() + ": no run of tally here (journal.sqlite is missing)");
  s = Journal::open_read_only(folder.run(), &journal);
  CHECK(s.message() == folder.run() + ": no run of tally here (journal.sqlite is missing)");
  const std::string file = folder.run() + "/journal.sqlite";
  SUBCASE("not a database") {
    std::ofstream(file) << std::string(5000, 'x');
    for (const auto& open : {Journal::open, Journal::open_read_only}) {
      s = open(folder.run(), &journal);
      CHECK_FALSE(s);
      CHECK(s.message().rfind(file + ": is damaged", 0) == 0);
    }
  }
  SUBCASE("empty, as a kill right at the start leaves it") {
    std::ofstream(file).flush();
    s = Journal::open(folder.run(), &journal);
    CHECK(s.message() == file + ": is not a complete journal; start the run again");
  }
  SUBCASE("pages overwritten") {
    {
      TextPool pool;
      auto writer = create(folder);
      for (int i = 0; i < 2000; ++i) {
        REQUIRE(writer->add(workpackage(i, pool, std::string(100, 'x')), pool, {{}, "s", "d", ""}));
      }
    }
    std::fstream damage(file, std::ios::in | std::ios::out | std::ios::binary);
    damage.seekp(8192);
    damage << std::string(40000, '\x5a');
    damage.close();
    s = Journal::open(folder.run(), &journal);
    CHECK_FALSE(s);
    CHECK(s.message().find("is damaged") != std::string::npos);
  }
}

TEST_CASE("rows that cannot be read are no end of the rows") {
  Folder folder;
  {
    TextPool pool;
    auto writer = create(folder);
    REQUIRE(writer->begin());
    for (int i = 0; i < 300; ++i) {
      REQUIRE(writer->add(workpackage(i, pool, std::string(500, 'x')), pool, {{}, "s", "d", ""}));
    }
    REQUIRE(writer->commit());
  }
  const std::string file = folder.run() + "/journal.sqlite";
  std::fstream damage(file, std::ios::in | std::ios::out | std::ios::binary);
  damage.seekp(static_cast<std::streamoff>(std::filesystem::file_size(file) / 8192 * 4096));
  damage << std::string(8192, '\x5a');
  damage.close();
  std::unique_ptr<Journal> journal;
  REQUIRE(Journal::open_read_only(folder.run(), &journal));
  std::vector<Journal::Stored> all;
  const Status read = journal->workpackages(&all);
  CHECK_FALSE(read);
  CHECK(read.message().find("is damaged") != std::string::npos);
  std::vector<Journal::Tally> counts;
  CHECK_FALSE(journal->states(&counts));
}

TEST_CASE("a folder that may not be written") {
  if (geteuid() == 0) return;  // root may write everywhere
  Folder folder;
  create(folder).reset();
  chmod(folder.run().c_str(), 0500);
  std::unique_ptr<Journal> journal;
  CHECK(Journal::open_read_only(folder.run(), &journal));
  const Status s = Journal::open(folder.run(), &journal);
  CHECK_FALSE(s);
}

TEST_CASE("a full disk is said, and what was committed stays") {
  Folder folder;
  const int status = in_child([&] {
    TextPool pool;
    auto journal = create(folder);
    REQUIRE(journal->add(workpackage(0, pool, "v"), pool, {{}, "s", "d", ""}));
    // A file-size limit stands for a disk that is full.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{200000, 200000};
    setrlimit(RLIMIT_FSIZE, &limit);
    Status s;
    for (int i = 1; i < 10000 && s; ++i) {
      s = journal->add(workpackage(i, pool, std::string(1000, 'x') + std::to_string(i)), pool,
                       {{}, "s", "d", ""});
    }
    if (s) _exit(3);
    if (s.message().find("journal.sqlite: ") == std::string::npos) _exit(4);
  });
  CHECK(status == 0);
  std::unique_ptr<Journal> journal;
  REQUIRE(Journal::open(folder.run(), &journal));
  CHECK(workpackages(*journal).size() >= 1);
}

TEST_CASE("a thousand workpackages cost little") {
  Folder folder;
  TextPool pool;
  auto journal = create(folder);
  REQUIRE(journal->begin());
  for (int i = 0; i < 1000; ++i)
    REQUIRE(journal->add(workpackage(i, pool, "v"), pool, {{}, "s", "d", ""}));
  REQUIRE(journal->commit());
  const clock_t start = clock();
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(journal->set_outcome(i, in_state(State::running)));
    REQUIRE(journal->set_outcome(i, in_state(State::done)));
  }
  // Processor time, so that a busy machine does not fail it. About 0.05 s.
  CHECK(static_cast<double>(clock() - start) / CLOCKS_PER_SEC < 0.5);
}
