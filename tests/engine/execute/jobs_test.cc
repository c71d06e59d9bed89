// Following jobs, with a scheduler that misbehaves as the test says; tests/slurm/ has the real one.
#include <doctest/doctest.h>
#include <unistd.h>

#include "engine/base/files.h"
#include "engine/execute/jobs/job_rules.h"
#include "engine/execute/jobs/jobs.h"
#include "tests/engine/execute/fake_scheduler.h"
#include "tests/engine/execute/run_fixture.h"

using namespace tally;
using namespace tally::testing;
using Kind = JobEnd::Kind;

namespace {

std::unique_ptr<Journal> new_journal(const std::string& folder) {
  std::unique_ptr<Journal> journal;
  REQUIRE(Journal::create(folder, RunRecord(), Sources(), &journal));
  return journal;
}

struct Following {
  Following() {
    timing.background = false;
    // How much fits into a turn is not to depend on the machine.
    timing.longest_turn = std::chrono::hours(1);
    jobs.set_timing(timing);
  }
  Job job(int workpackage, const std::string& name = "name") const {
    Job made;
    made.workpackage = workpackage;
    made.request = {name, folder.path(), "script", "sbatch", {}};
    made.marks.status_file = folder.path() + "/job.status";
    made.label = "000005_train";
    made.rules.grace = std::chrono::seconds(60);
    return made;
  }
  // What has ended by so many seconds later.
  std::vector<JobEnd> later(int seconds) {
    now += std::chrono::seconds(seconds);
    std::vector<JobEnd> ended;
    REQUIRE(jobs.turn(&ended, now));
    return ended;
  }
  void says(JobState state, const std::string& word, const std::string& reason = "",
            const std::string& name = "name", int restarts = -1) {
    scheduler.known["101"] = {state, word, reason, name, 1000, 0, restarts};
  }
  void says_restarts(JobState state, const std::string& word, int restarts) {
    says(state, word, "", "name", restarts);
  }

  TemporaryFolder folder;
  std::unique_ptr<Journal> journal = new_journal(folder.path());
  RunLog log{folder.path() + "/log"};
  FakeScheduler scheduler;
  JobFollower::Timing timing;
  JobFollower jobs{scheduler, *journal, log};
  JobFollower::Clock::time_point now = JobFollower::Clock::now();
};

}  // namespace

TEST_CASE("following: the job's own word, then the scheduler's; unknown is lost, never a success") {
  Following f;
  f.jobs.add(f.job(5));
  f.says(JobState::queued, "PENDING", "Priority");
  CHECK(f.later(0).empty());
  REQUIRE(f.jobs.ids() == std::vector<std::string>{"101"});
  CHECK(f.later(60).empty());
  SUBCASE("a good end counts when the scheduler agrees") {
    f.folder.write("job.status", "0\n");
    SUBCASE("the job has ended well") {
      f.says(JobState::ok, "COMPLETED");
    }
    SUBCASE("it runs, in its first start") {
      f.says_restarts(JobState::running, "RUNNING", 0);
    }
    SUBCASE("it was cancelled after that") {
      f.says(JobState::failed, "CANCELLED");
    }
    SUBCASE("the scheduler has forgotten it") {
      f.scheduler.known.clear();
    }
    const auto ended = f.later(60);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].workpackage == 5);
    CHECK(ended[0].kind == Kind::exit);
    CHECK(ended[0].exit_code == 0);
    CHECK(f.jobs.count() == 0);
  }
  SUBCASE("the scheduler does not answer: after the grace period") {
    f.folder.write("job.status", "0\n");
    f.scheduler.outage = true;
    CHECK(f.later(60).empty());
    CHECK(f.later(59).empty());
    REQUIRE(f.later(2).size() == 1);
  }
  SUBCASE("an answer from before the status says nothing about it") {
    f.says_restarts(JobState::running, "RUNNING", 0);
    CHECK(f.later(60).empty());
    f.folder.write("job.status", "0\n");
    f.says_restarts(JobState::queued, "PENDING", 1);
    CHECK(f.later(60).empty());
  }
  SUBCASE("a good end of a script whose node was lost is none") {
    f.folder.write("job.status", "0\n");
    SUBCASE("started again at once") {
      f.says_restarts(JobState::running, "RUNNING", 1);
      for (int i = 0; i < 5; ++i) CHECK(f.later(60).empty());
    }
    SUBCASE("being ended: its end will say which") {
      f.says_restarts(JobState::running, "COMPLETING", 0);
      CHECK(f.later(30).empty());
      f.says_restarts(JobState::retryable, "NODE_FAIL", 0);
      const auto ended = f.later(30);
      REQUIRE(ended.size() == 1);
      CHECK(ended[0].kind == Kind::retryable);
      CHECK(ended[0].words == "exit status 0; job 101: NODE_FAIL");
      return;
    }
    SUBCASE("waits to be started again") {
      f.says_restarts(JobState::queued, "PENDING", 1);
      for (int i = 0; i < 5; ++i) CHECK(f.later(60).empty());
      f.says_restarts(JobState::running, "RUNNING", 1);
      for (int i = 0; i < 5; ++i) CHECK(f.later(60).empty());
    }
    f.folder.write("job.status", "0\nrestart 1\n");
    const auto ended = f.later(60);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].exit_code == 0);
  }
  SUBCASE("half a status file is none") {
    f.folder.write("job.status", "0");
    CHECK(f.later(60).empty());
  }
  SUBCASE("a failure counts when the scheduler says that the job is over") {
    f.folder.write("job.status", "143\n");
    f.says(JobState::running, "COMPLETING");
    CHECK(f.later(60).empty());
    SUBCASE("with its reason") {
      f.says(JobState::failed, "TIMEOUT");
      const auto ended = f.later(30);
      REQUIRE(ended.size() == 1);
      CHECK(ended[0].kind == Kind::failed);
      CHECK(ended[0].word == "TIMEOUT");
      CHECK(ended[0].words == "exit status 143; job 101: TIMEOUT");
    }
    SUBCASE("or says nothing for long") {
      f.scheduler.outage = true;
      const auto ended = f.later(61);
      REQUIRE(ended.size() == 1);
      CHECK(ended[0].kind == Kind::exit);
      CHECK(ended[0].exit_code == 143);
    }
    SUBCASE("or does not know of it yet: its node is being lost") {
      f.says(JobState::running, "RUNNING");
      for (int i = 0; i < 10; ++i) CHECK(f.later(30).empty());
      SUBCASE("a lost node") {
        f.says(JobState::retryable, "NODE_FAIL");
        const auto ended = f.later(30);
        REQUIRE(ended.size() == 1);
        CHECK(ended[0].kind == Kind::retryable);
      }
      SUBCASE("and says nothing any more") {
        f.scheduler.outage = true;
        CHECK(f.later(60).empty());
        REQUIRE(f.later(61).size() == 1);
      }
    }
    SUBCASE("of the program's own") {
      f.says(JobState::failed, "FAILED", "NonZeroExitCode");
      const auto ended = f.later(30);
      REQUIRE(ended.size() == 1);
      CHECK(ended[0].kind == Kind::exit);
      CHECK(ended[0].exit_code == 143);
    }
  }
  SUBCASE("a failure that the first start of a requeued job left is none") {
    f.folder.write("job.status", "143\n");
    f.says(JobState::queued, "PENDING", "BeginTime");
    for (int i = 0; i < 5; ++i) CHECK(f.later(60).empty());
    f.says(JobState::running, "RUNNING");
    unlink((f.folder.path() + "/job.status").c_str());  // as its script does when it starts
    CHECK(f.later(60).empty());
    SUBCASE("it ends well") {
      f.folder.write("job.status", "0\n");
      const auto ended = f.later(60);
      REQUIRE(ended.size() == 1);
      CHECK(ended[0].exit_code == 0);
    }
    SUBCASE("it fails") {
      f.folder.write("job.status", "7\n");
      CHECK(f.later(60).empty());
      f.says(JobState::failed, "FAILED");
      REQUIRE(f.later(60).size() == 1);
    }
  }
  SUBCASE("ended without an exit status: in Slurm's words, after the grace period") {
    f.says(JobState::failed, "CANCELLED", "None");
    CHECK(f.later(60).empty());
    CHECK(f.later(59).empty());
    const auto ended = f.later(2);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::failed);
    CHECK(ended[0].words == "job 101 ended without an exit status: CANCELLED (None)");
  }
  SUBCASE("the status file comes late") {
    f.says(JobState::ok, "COMPLETED");
    CHECK(f.later(60).empty());
    f.folder.write("job.status", "0\n");
    REQUIRE(f.later(30).size() == 1);
  }
  SUBCASE("a lost node is worth another try") {
    f.says(JobState::retryable, "NODE_FAIL");
    CHECK(f.later(60).empty());
    const auto ended = f.later(61);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::retryable);
  }
  SUBCASE("requeued: it waits again, nothing has ended") {
    f.says(JobState::retryable, "NODE_FAIL");
    CHECK(f.later(60).empty());
    f.says(JobState::queued, "PENDING", "BeginTime");
    CHECK(f.later(61).empty());
    f.says(JobState::retryable, "NODE_FAIL");
    CHECK(f.later(61).empty());  // the grace period begins anew
  }
  SUBCASE("the scheduler knows it no more: lost, not before the grace period") {
    f.scheduler.known.clear();
    CHECK(f.later(60).empty());
    CHECK(f.later(30).empty());
    const auto ended = f.later(31);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::lost);
    CHECK(ended[0].words == "the scheduler does not know job 101, and it left no exit status");
  }
  SUBCASE("its id belongs to another's job by now: lost, whatever became of that") {
    f.says(JobState::ok, "COMPLETED", "", "other");
    CHECK(f.later(60).empty());
    const auto ended = f.later(61);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::lost);
  }
  SUBCASE("completed without an exit status is lost too") {
    f.says(JobState::ok, "COMPLETED");
    CHECK(f.later(60).empty());
    const auto ended = f.later(61);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::lost);
  }
  SUBCASE("a scheduler that does not answer tells nothing") {
    f.scheduler.outage = true;
    f.scheduler.known.clear();
    for (int i = 0; i < 10; ++i) CHECK(f.later(3600).empty());
    CHECK(f.scheduler.queries > 5);
  }
}

TEST_CASE("following: a preempted job is worth another try, whatever its state and its status") {
  Following f;
  f.jobs.add(f.job(5));
  f.says(JobState::running, "RUNNING");
  CHECK(f.later(60).empty());
  const auto preempted = [&](JobState state, const std::string& word) {
    f.says(state, word, "None");
    f.scheduler.known["101"].preempted = true;
  };
  const auto check_again = [&](const std::string& words) {
    std::vector<JobEnd> ended = f.later(60);
    for (const JobEnd& end : f.later(61)) ended.push_back(end);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::retryable);
    CHECK(ended[0].word == "PREEMPTED");
    CHECK(ended[0].words == words);
  };
  SUBCASE("the script says so") {
    f.folder.write("job.status", "143\npreempted\n");
    SUBCASE("its state is its script's") {
      f.says(JobState::failed, "FAILED", "NonZeroExitCode");
      check_again("job 101 was preempted (FAILED)");
    }
    SUBCASE("or Slurm has forgotten it") {
      f.scheduler.known.clear();
      check_again("job 101 was preempted");
    }
  }
  SUBCASE("without an exit status") {
    SUBCASE("FAILED") {
      preempted(JobState::failed, "FAILED");
      check_again("job 101 was preempted (FAILED)");
    }
    SUBCASE("COMPLETED") {
      preempted(JobState::ok, "COMPLETED");
      check_again("job 101 was preempted (COMPLETED)");
    }
    SUBCASE("TIMEOUT") {
      preempted(JobState::failed, "TIMEOUT");
      check_again("job 101 was preempted (TIMEOUT)");
    }
    SUBCASE("CANCELLED") {
      preempted(JobState::failed, "CANCELLED");
      check_again("job 101 was preempted (CANCELLED)");
    }
  }
  SUBCASE("an exit status of a script that could not ask") {
    SUBCASE("the job has ended") {
      f.folder.write("job.status", "7\nunasked\n");
      preempted(JobState::failed, "FAILED");
      check_again("job 101 was preempted (FAILED)");
    }
    SUBCASE("the job runs") {
      f.folder.write("job.status", "0\nunasked\n");
      preempted(JobState::running, "RUNNING");
      check_again("job 101 was preempted (RUNNING)");
    }
  }
  SUBCASE("nor is one that could not ask preempted for that") {
    f.folder.write("job.status", "7\nunasked\n");
    f.says(JobState::failed, "FAILED");
    const auto ended = f.later(60);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::exit);
  }
  SUBCASE("an exit status of the script that Slurm ended") {
    f.folder.write("job.status", "143\n");
    preempted(JobState::failed, "CANCELLED");
    check_again("job 101 was preempted (CANCELLED)");
  }
  SUBCASE("a program that failed before has failed") {
    f.folder.write("job.status", "7\n");
    preempted(JobState::failed, "FAILED");
    const auto ended = f.later(60);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::exit);
    CHECK(ended[0].exit_code == 7);
  }
  SUBCASE("requeued: it waits again") {
    f.folder.write("job.status", "143\npreempted\n");
    f.says(JobState::queued, "PENDING", "BeginTime");
    for (int i = 0; i < 5; ++i) CHECK(f.later(60).empty());
  }
}

TEST_CASE("following without a status file: JUBE's marks, or the scheduler's word alone") {
  Following f;
  Job job = f.job(5);
  job.marks = JobMarks();
  SUBCASE("done_file and error_file") {
    job.marks.done_file = f.folder.path() + "/ready";
    job.marks.error_file = f.folder.path() + "/error";
    f.jobs.add(job);
    f.says(JobState::running, "RUNNING");
    CHECK(f.later(60).empty());
    f.folder.write("ready", "");
    const auto ended = f.later(60);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].exit_code == 0);
  }
  SUBCASE("an error file comes before a done file") {
    job.marks.done_file = f.folder.path() + "/ready";
    job.marks.error_file = f.folder.path() + "/error";
    f.folder.write("ready", "");
    f.folder.write("error", "");
    f.says(JobState::ok, "COMPLETED");
    f.jobs.add(job);
    const auto ended = f.later(60);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].exit_code == 1);
  }
  SUBCASE("none: COMPLETED is a good end") {
    f.jobs.add(job);
    f.says(JobState::ok, "COMPLETED");
    const auto ended = f.later(60);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::exit);
    CHECK(ended[0].exit_code == 0);
  }
}

TEST_CASE("submitting: transient refusals are retried, looked for first; never two jobs") {
  Following f;
  f.scheduler.refuse_with = Refusal::transient;
  f.scheduler.words = "sbatch: Socket timed out";
  f.jobs.add(f.job(5));
  CHECK(f.later(0).empty());
  CHECK(f.scheduler.requests.size() == 1);
  SUBCASE("the answer was lost, not the job") {
    f.scheduler.found["name"] = "77";
    f.says(JobState::running, "RUNNING");
    f.later(2);
    CHECK(f.jobs.ids() == std::vector<std::string>{"77"});
    CHECK(f.scheduler.requests.size() == 1);
  }
  SUBCASE("while it cannot be looked for nothing is submitted") {
    f.scheduler.outage = true;
    for (int i = 0; i < 20; ++i) {
      CHECK(f.later(100).empty());
      CHECK(f.jobs.next() >= f.now + std::chrono::seconds(1));  // nothing is to do until then
    }
    CHECK(f.scheduler.requests.size() == 1);
    SUBCASE("at last its fate is unknown") {
      const auto ended = f.later(3600);
      REQUIRE(ended.size() == 1);
      CHECK(ended[0].kind == Kind::lost);
    }
    SUBCASE("it was not taken: submitted again") {
      f.scheduler.outage = false;
      f.scheduler.refuse_with = Refusal::none;
      f.scheduler.known["102"] = {JobState::running, "RUNNING", "", "name", 0, 0};
      f.later(100);
      f.later(100);
      CHECK(f.scheduler.requests.size() == 2);
      CHECK(f.jobs.ids() == std::vector<std::string>{"102"});
    }
  }
}

TEST_CASE("submitting: a command that fails has failed only when the scheduler has no such job") {
  Following f;
  f.scheduler.refuse_with = Refusal::failed;
  f.scheduler.words = "sbatch: error: invalid partition specified: x";
  Job first = f.job(5);
  first.members.push_back(f.job(6));
  first.members.front().marks.status_file += "6";
  f.jobs.add(first);
  CHECK(f.later(0).empty());
  SUBCASE("it has it, and its members") {
    f.scheduler.found["name"] = "77";
    f.scheduler.known["77"] = {JobState::running, "RUNNING", "", "name", 0, 0};
    CHECK(f.later(1).empty());
    CHECK(f.jobs.ids() == std::vector<std::string>{"77"});
    CHECK(f.jobs.count() == 2);
  }
  SUBCASE("it has not") {
    const auto ended = f.later(1);
    REQUIRE(ended.size() == 2);
    for (const JobEnd& end : ended) {
      CHECK(end.kind == Kind::rejected);
      CHECK(end.words == f.scheduler.words);
    }
  }
  SUBCASE("it cannot be asked: unknown in the end") {
    f.scheduler.outage = true;
    for (int i = 0; i < 20; ++i) CHECK(f.later(100).empty());
    const auto ended = f.later(3600);
    REQUIRE(ended.size() == 2);
    CHECK(ended[0].kind == Kind::lost);
  }
  CHECK(f.scheduler.requests.size() == 1);
}

TEST_CASE("submitting: limits") {
  Following f;
  SUBCASE("jobs in flight") {
    for (int i = 0; i < 5; ++i) {
      Job job = f.job(i, "name" + std::to_string(i));
      job.marks.status_file = f.folder.path() + "/status" + std::to_string(i);
      job.rules.in_flight = 2;
      f.jobs.add(job);
    }
    f.later(0);
    CHECK(f.scheduler.requests.size() == 2);
    CHECK(f.jobs.nothing_to_submit());  // without an end there is nothing to do
    CHECK(f.jobs.unsubmitted() == std::vector<int>{2, 3, 4});
    f.scheduler.known["101"] = {JobState::ok, "COMPLETED", "", "name0", 0, 0};
    f.scheduler.known["102"] = {JobState::running, "RUNNING", "", "name1", 0, 0};
    f.folder.write("status0", "0\n");
    CHECK(f.later(60).size() == 1);
    f.later(1);
    CHECK(f.scheduler.requests.size() == 3);
  }
  SUBCASE("rate, after a first burst") {
    for (int i = 0; i < 600; ++i) {
      Job job = f.job(i, "name" + std::to_string(i));
      job.rules.per_second = 10;
      f.jobs.add(job);
    }
    f.later(0);
    f.later(0);
    CHECK(f.scheduler.requests.size() == 500);
    CHECK_FALSE(f.jobs.nothing_to_submit());
    CHECK(f.jobs.next() > f.now + std::chrono::milliseconds(90));  // one more in 100 ms
    CHECK(f.jobs.next() <= f.now + std::chrono::milliseconds(100));
    f.later(2);
    CHECK(f.scheduler.requests.size() == 520);
  }
  SUBCASE("a turn ends after its time: the rest is for the next ones") {
    f.timing.longest_turn = std::chrono::milliseconds(0);
    f.jobs.set_timing(f.timing);
    for (int i = 0; i < 3; ++i) f.jobs.add(f.job(i, "name" + std::to_string(i)));
    for (size_t turn = 1; turn <= 3; ++turn) {
      f.later(0);
      CHECK(f.scheduler.requests.size() == turn);
    }
    CHECK(f.jobs.nothing_to_submit());
  }
  SUBCASE("the scheduler's limit on queued jobs: waited for as long as ours are there") {
    f.jobs.add(f.job(0, "a"));
    f.later(0);
    f.scheduler.refuse_with = Refusal::full;
    f.scheduler.words = "sbatch: job submit limit";
    f.scheduler.known["101"] = {JobState::running, "RUNNING", "", "a", 0, 0};
    f.jobs.add(f.job(1, "b"));
    for (int i = 0; i < 10; ++i) CHECK(f.later(3600).empty());
    CHECK(f.jobs.nothing_to_submit());
    f.scheduler.refuse_with = Refusal::none;
    f.later(100);
    CHECK(f.jobs.ids().size() == 2);
  }
  SUBCASE("a rejected job ends with the scheduler's words") {
    f.scheduler.refuse_with = Refusal::rejected;
    f.scheduler.words = "sbatch: error: invalid partition specified: x";
    f.jobs.add(f.job(5));
    const auto ended = f.later(0);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::rejected);
    CHECK(ended[0].words == f.scheduler.words);
  }
  SUBCASE("pending") {
    Job job = f.job(5);
    job.rules.pending = std::chrono::seconds(30);
    f.jobs.add(job);
    f.says(JobState::queued, "PENDING", "Resources");
    const auto ended = f.later(0);  // in the queue since 1970
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::failed);
    CHECK(f.scheduler.cancelled == std::vector<std::vector<std::string>>{{"101"}});
  }
  SUBCASE("a reason that does not pass") {
    f.jobs.add(f.job(5));
    f.says(JobState::queued, "PENDING", "PartitionTimeLimit");
    f.scheduler.known["101"].stuck = true;
    CHECK(f.later(0).empty());
    CHECK(f.later(59).empty());
    CHECK(f.later(61).size() == 1);
    CHECK(f.scheduler.cancelled.size() == 1);
  }
}

TEST_CASE("the folders are a job's from its submission on, until its end was taken") {
  Following f;
  Job job = f.job(5);
  Job member = f.job(6);
  member.marks.status_file = f.folder.path() + "/rider.status";
  job.members.push_back(member);
  const auto owner = [&](const char* file) {
    std::string text;
    const Status s = read_file(f.folder.path() + "/" + file, &text);
    return s ? text : "none";
  };
  std::string at_submission;
  f.scheduler.on_submit = [&](const JobRequest&, const std::string&) {
    at_submission = owner("job.status.job") + owner("rider.status.job");
  };
  f.jobs.add(job);
  f.says(JobState::running, "RUNNING");
  f.later(0);
  CHECK(at_submission == "name\nname\n");
  SUBCASE("a failure") {
    f.folder.write("job.status", "7\n");
    f.says(JobState::failed, "FAILED");
    f.later(60);
    f.later(60);
    CHECK(owner("job.status.job") == "ended\n");
  }
  SUBCASE("a good end") {
    f.folder.write("job.status", "0\n");
    REQUIRE(f.later(60).size() == 1);
    CHECK(owner("job.status.job") == "ended\n");
  }
  SUBCASE("what is lost may be found again") {
    f.scheduler.known.clear();
    f.later(60);
    REQUIRE(f.later(61).size() == 2);
    CHECK(owner("job.status.job") == "name\n");
  }
  SUBCASE("cancelled") {
    std::vector<int> workpackages;
    REQUIRE(f.jobs.cancel_all(&workpackages));
    CHECK(owner("job.status.job") == "ended\n");
    CHECK(owner("rider.status.job") == "ended\n");
  }
  SUBCASE("a folder that cannot be written: not submitted, and said") {
    Job third = f.job(7, "third");
    third.marks.status_file = f.folder.path() + "/missing/job.status";
    f.jobs.add(third);
    const auto ended = f.later(1);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == Kind::rejected);
    CHECK(ended[0].words.find("missing/job.status.job") != std::string::npos);
    CHECK(f.scheduler.requests.size() == 1);
  }
}

TEST_CASE("of two jobs of one name, the one that claimed the folder is followed") {
  Following f;
  f.jobs.add(f.job(5));
  f.says(JobState::queued, "PENDING");
  f.later(0);
  f.folder.write("job.status.claim-name", "4712\n");
  f.scheduler.known["4712"] = {JobState::running, "RUNNING", "", "name", 1000, 0, 0};
  SUBCASE("its exit status is there, and ours waits still") {
    f.folder.write("job.status", "0\n");
  }
  SUBCASE("ours has ended without one") {
    f.says(JobState::failed, "FAILED");
  }
  std::vector<JobEnd> ended = f.later(60);
  for (const JobEnd& end : f.later(61)) ended.push_back(end);
  CHECK(f.scheduler.cancelled == std::vector<std::vector<std::string>>{{"101"}});
  f.folder.write("job.status", "0\n");
  f.scheduler.known["4712"].state = JobState::ok;
  f.scheduler.known["4712"].word = "COMPLETED";
  for (const JobEnd& end : f.later(80)) ended.push_back(end);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].kind == Kind::exit);
  CHECK(ended[0].exit_code == 0);
}

TEST_CASE("a job of another name is not cancelled when the folder's is followed") {
  Following f;
  f.jobs.add(f.job(5));
  f.says(JobState::running, "RUNNING", "", "another");
  f.folder.write("job.status.claim-name", "4712\n");
  f.scheduler.known["4712"] = {JobState::ok, "COMPLETED", "", "name", 1000, 0, 0};
  f.folder.write("job.status", "0\n");
  std::vector<JobEnd> ended = f.later(0);
  for (const JobEnd& end : f.later(61)) ended.push_back(end);
  CHECK(f.scheduler.cancelled.empty());
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].kind == Kind::exit);
  std::string log;
  REQUIRE(read_file(f.folder.path() + "/log", &log));
  CHECK(log.find("000005_train: job 4712 of the name name works in its folder, and job 101 is left "
                 "alone: no job of this name in the queue has that id\n") != std::string::npos);
}

TEST_CASE("a job whose id is another's is found by its name") {
  Following f;
  f.jobs.add(f.job(5));
  f.says(JobState::running, "RUNNING", "", "another");
  f.scheduler.found["name"] = "4712";
  f.scheduler.known["4712"] = {JobState::running, "RUNNING", "", "name", 1000, 0, 0};
  CHECK(f.later(0).empty());
  CHECK(f.later(61).empty());
  CHECK(f.jobs.ids() == std::vector<std::string>{"4712"});
  CHECK(f.scheduler.cancelled.empty());
  std::string log;
  REQUIRE(read_file(f.folder.path() + "/log", &log));
  CHECK(log.find("000005_train: job 101 has another name; found job 4712 (name)\n") !=
        std::string::npos);
}

TEST_CASE("all are cancelled by one command") {
  Following f;
  for (int i = 0; i < 3; ++i) f.jobs.add(f.job(i, "name" + std::to_string(i)));
  f.later(0);
  std::vector<int> workpackages;
  REQUIRE(f.jobs.cancel_all(&workpackages));
  CHECK(f.scheduler.cancelled == std::vector<std::vector<std::string>>{{"101", "102", "103"}});
  CHECK(workpackages.size() == 3);
  CHECK(f.jobs.count() == 0);
}

TEST_CASE("Slurm's states: the first word counts") {
  CHECK(slurm_state("CANCELLED by 1000") == JobState::failed);
  CHECK(slurm_state("CANCELLED+") == JobState::failed);
  CHECK(slurm_state("COMPLETED") == JobState::ok);
  CHECK(slurm_state("COMPLETING") == JobState::running);
  CHECK(slurm_state("NODE_FAIL") == JobState::retryable);
  CHECK(slurm_state("PREEMPTED") == JobState::retryable);
  CHECK(slurm_state("REQUEUED") == JobState::queued);
  CHECK(slurm_state("OUT_OF_MEMORY") == JobState::failed);
  CHECK(slurm_state("SOMETHING_NEW") == JobState::unheard);
}

TEST_CASE("a job's environment: what the list names; Slurm's own only in full") {
  const Environment base{{"HOME", "/h"},           {"LC_ALL", "C"},
                         {"OMP_NUM_THREADS", "4"}, {"SBATCH_PARTITION", "p"},
                         {"SLURM_CONF", "/c"},     {"SLURM_NTASKS", "7"}};
  using Names = std::vector<std::string>;
  const auto names = [&](const std::string& wanted) {
    Names list;
    for (const auto& [name, value] : job_environment(base, wanted)) list.push_back(name);
    return list;
  };
  CHECK(names(JobRules().environment) == Names{"HOME", "LC_ALL", "SLURM_CONF"});
  CHECK(names("*") == Names{"HOME", "LC_ALL", "OMP_NUM_THREADS", "SLURM_CONF"});
  CHECK(names("OMP_*, SBATCH_PARTITION") ==
        Names{"OMP_NUM_THREADS", "SBATCH_PARTITION", "SLURM_CONF"});
}

TEST_CASE("a platform's rules for its jobs") {
  std::map<std::string, std::string> values{{"jobs_in_flight", "5"},
                                            {"submit_rate", "0.5"},
                                            {"pending_limit", "2h"},
                                            {"status_grace", "90s"},
                                            {"resubmit", "0"}};
  const Lookup lookup = [&](std::string_view name) -> const std::string* {
    const auto found = values.find(std::string(name));
    return found != values.end() ? &found->second : nullptr;
  };
  JobRules rules;
  REQUIRE(read_job_rules(lookup, &rules));
  CHECK(rules.in_flight == 5);
  CHECK(rules.per_second == 0.5);
  CHECK(rules.pending == std::chrono::hours(2));
  CHECK(rules.grace == std::chrono::seconds(90));
  CHECK(rules.resubmits == 0);
  CHECK(rules.patience == std::chrono::hours(1));
  values["jobs_in_flight"] = "many";
  CHECK(read_job_rules(lookup, &rules).message() ==
        "jobs_in_flight \"many\" is not a number from 0 on");
  values["jobs_in_flight"] = "1.5";
  CHECK(read_job_rules(lookup, &rules).message() ==
        "jobs_in_flight \"1.5\" is not a whole number from 0 on");
  values["jobs_in_flight"] = "";
  values["pending_limit"] = "soon";
  CHECK(read_job_rules(lookup, &rules).message().find("pending_limit \"soon\" is not a duration") ==
        0);
}
