// tally archive, tally verify
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/cli/application.h"
#include "engine/cli/option_parsing.h"
#include "engine/cli/prepare.h"
#include "engine/cli/replay.h"
#include "engine/cli/runs.h"
#include "engine/cli/show_results.h"
#include "engine/cli/version.h"
#include "engine/evidence/archive.h"
#include "engine/evidence/scratch.h"
#include "engine/evidence/signature.h"
#include "engine/evidence/verify.h"
#include "engine/journal/journal.h"

namespace tally {
namespace {

// "quickstart-000003.zip"
std::string default_file(const std::vector<Run>& runs) {
  std::string name = runs.front().definitions().name.value;
  std::ranges::replace_if(
      name, [](char c) { return c == '/' || static_cast<unsigned char>(c) <= ' '; }, '_');
  name += "-" + padded_id(runs.front().directory().id);
  return name + (runs.size() > 1 ? fmt::format("-and-{}", runs.size() - 1) : "") + ".zip";
}

void print_verified(const Verification& found) {
  for (const ArchivedRun& run : found.runs)
    fmt::print("{}, run {}: {} table{} made again from {} sample{}\n", run.benchmark, run.id,
               run.tables, run.tables == 1 ? "" : "s", run.samples, run.samples == 1 ? "" : "s");
  for (const LossWitness& witness : found.witnesses)
    fmt::print(
        "{}: the losses of the first {} step{} differ by {:.2g} of the reference model's in "
        "float64 "
        "at most\n",
        witness.member, witness.steps, witness.steps == 1 ? "" : "s", witness.difference);
  fmt::print("{} members, made by {}\n", found.members,
             found.program.empty() ? "an unknown program" : found.program);
}

// An archive without a signature says what was measured, not who says so.
bool has_good_signature(const Settings& settings, const VerifyArgs& args) {
  const std::string file = args.signature.empty() ? args.file + ".sig" : args.signature;
  bool there = false;
  if (print_if_error(settings, path_exists(file, &there))) return false;
  if (!there && args.signature.empty() && args.signers.empty()) {
    if (!settings.quiet) fmt::print("not signed: there is no {}\n", file);
    return true;
  }
  Signature signature;
  Status status = there ? check_signature(args.file, file, args.signers, &signature)
                        : file_error(file, "cannot read", ENOENT);
  if (print_if_error(settings, status)) return false;
  if (!signature.good) {
    print_error(settings, fmt::format("{}: the signature does not hold: {}", file, signature.text));
    return false;
  }
  fmt::print("{}\n", signature.text);
  return true;
}

// Programs that are others than then. They may be better, and the values of others.
void note_other_programs(const Verification& found) {
  for (const auto& [path, sha256] : found.programs) {
    std::string now;
    if (path.empty() || path.front() != '/' || (sha256_file(path, &now) && now == sha256)) continue;
    fmt::print(stderr, "note: {} is {}\n", path,
               now.empty() ? "not there" : "another program than when the run was archived");
  }
}

int replay_all(const Settings& settings, const VerifyArgs& args, const std::string& unpacked,
               const Verification& found) {
  ReplayRequest request;
  const bool all = args.share == "100%";
  if (all) request.share = 1;
  if ((!all && !parse_percent(args.share, &request.share)) ||
      !parse_percent(args.threshold, &request.threshold)) {
    print_error(settings, "--share and --threshold are percentages", "write them as 3% or 0.5%");
    return kBadInput;
  }
  if (print_if_error(settings, sha256_file(args.file, &request.seed))) return kFailed;
  note_other_programs(found);
  int code = kFine;
  for (const ArchivedRun& run : found.runs) {
    Scratch work;
    if (print_if_error(settings, work.make())) return kFailed;
    request.folder = unpacked + "/" + run.folder;
    request.work = work.path();
    const int one = replay(settings, request);
    code = std::max(code, one);
  }
  return code;
}

}  // namespace

int archive_command(const Settings& settings, const ArchiveArgs& args) {
  std::vector<Run> runs;
  if (!open_runs(settings, args.runs, args.ids, &runs)) return kBadInput;
  for (const Run& run : runs) {
    if (const auto holder = run_holder(run.directory().path)) {
      print_error(settings, *holder, "archive it when it has ended");
      return kBadInput;
    }
  }
  const std::string file = args.out.empty() ? default_file(runs) : args.out;
  Archived archived;
  if (print_if_error(settings, write_archive(settings, runs, kVersion, file, &archived)))
    return kFailed;
  bool whole = true;
  for (const Archived::Said& said : archived.said) {
    print_unfinished(*said.run, said.unfinished);
    print_diagnostics(settings, said.diagnostics, said.run->sources());
    whole = whole && !said.diagnostics.has_errors();
  }
  for (const std::string& note : archived.notes) fmt::print(stderr, "note: {}\n", note);
  if (!settings.quiet)
    fmt::print("{}: {} members, {} bytes\n", file, archived.members, archived.bytes);
  if (args.sign.empty()) return whole ? kFine : kFailed;
  if (print_if_error(settings, sign_file(file, args.sign))) return kFailed;
  if (!settings.quiet) fmt::print("{}.sig\n", file);
  return whole ? kFine : kFailed;
}

int verify_command(const Settings& settings, const VerifyArgs& args) {
  Scratch scratch;
  if (print_if_error(settings, scratch.make())) return kFailed;
  Verification found;
  if (const Status read = verify_archive(settings, args.file, scratch.path(), args.compute, &found);
      !read) {
    print_error(settings, read);
    return kBadInput;
  }
  bool good = found.faults.empty();
  for (const Fault& fault : found.faults)
    print_error(settings, fmt::format("{}: {}{}{}", args.file, fault.member,
                                      fault.member.empty() ? "" : ": ", fault.what));
  if (good && !settings.quiet) print_verified(found);
  good = has_good_signature(settings, args) && good;
  fmt::print("{}: {}\n", args.file, good ? "verified" : "NOT verified");
  if (!good) return kFailed;
  return args.replay ? replay_all(settings, args, scratch.path(), found) : kFine;
}

void Application::add_archive() {
  CLI::App* archive = command("archive", "write runs into one file that can be verified", [this] {
    if (archive_.runs.empty()) archive_.runs.push_back(".");
    return archive_command(settings_, archive_);
  });
  archive
      ->add_option("runs", archive_.runs,
                   "folders of runs, runs' folders, input files; default: here")
      ->option_text("RUN ...");
  list(archive, "-i,--id", archive_.ids, "runs: numbers, -1 for the last one, last, all", "ID");
  archive->add_option("-o,--out", archive_.out, "the file to write; default: NAME-NUMBER.zip")
      ->option_text("FILE");
  archive
      ->add_option("--sign", archive_.sign,
                   "sign the file with this SSH key, by ssh-keygen; the signature is FILE.sig")
      ->option_text("KEY");

  CLI::App* verify =
      command("verify",
              "say whether an archive is as it was written, and its tables follow from it", [this] {
                if (verify_.replay && !may_execute("verify --replay")) return kBadInput;
                if (verify_.compute && !may_execute("verify --compute")) return kBadInput;
                return verify_command(settings_, verify_);
              });
  verify->add_option("file", verify_.file, "an archive")->required()->option_text("FILE");
  verify
      ->add_option("--signature", verify_.signature,
                   "its signature; default: FILE.sig, where there is one")
      ->option_text("FILE");
  verify
      ->add_option("--signers", verify_.signers,
                   "who may have signed it: a file of allowed signers, as ssh-keygen reads it")
      ->option_text("FILE");
  verify->add_flag("--compute", verify_.compute,
                   "compute again what Python, Perl or a shell computed for the tables");
  verify->add_flag("--replay", verify_.replay,
                   "on the machine that it ran on: run a part again, and say whether the values "
                   "agree");
  verify->add_option("--share", verify_.share, "with --replay: this part of the points (3%)")
      ->option_text("PERCENT");
  verify
      ->add_option("--threshold", verify_.threshold,
                   "with --replay: a smaller change does not matter (5%)")
      ->option_text("PERCENT");
}

}  // namespace tally
