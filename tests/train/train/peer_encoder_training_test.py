"""50 training steps of every head of BERT and DistilBERT here and in a PyTorch loop, from the same weights and data.

    peer_encoder_training_test.py TALLY_TRAIN SOURCE_DIRECTORY

The loop is independent of ours: transformers' models, torch.optim.AdamW, and losses of each sequence by itself.
"""
import json
import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
tool, root = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(root, "tests", "train", "data"))
from peer_support import check, skip  # noqa: E402

try:
    import h5py
    import numpy
    import torch
    import transformers as hf
except ImportError as error:
    skip(str(error))

torch.set_num_threads(1)
STEPS, RATE, SEQUENCE, SAMPLES = 50, 1e-3, 32, 8
WORDS = ["the", "cat", "dog", "sat", "ran", "on", "mat", "far", "red", "sun", "who", "where", "under", "tree"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS
CLS, SEP, MASK = 2, 3, 4


def tokens(text):
    return [PIECES.index(w) for w in text.split()]


def run(*flags, code=0):
    done = subprocess.run([tool, *map(str, flags)], capture_output=True, text=True, timeout=300)
    if done.returncode != code:
        sys.exit(f"FAILED: exit code {done.returncode}: {' '.join(map(str, flags))}\n{done.stdout}{done.stderr}")
    return done


def random_model(architecture, **more):
    torch.manual_seed(7)
    sizes = {"vocab_size": len(PIECES), "max_position_embeddings": SEQUENCE, **more}
    if architecture.startswith("Bert"):
        config = hf.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                               hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **sizes)
    else:
        config = hf.DistilBertConfig(dim=32, n_layers=2, n_heads=4, hidden_dim=64, dropout=0.0, attention_dropout=0.0,
                                     seq_classif_dropout=0.0, qa_dropout=0.0, **sizes)
    return getattr(hf, architecture)(config)


def draw(g, low, high, count):
    return torch.randint(low, high, (count,), generator=g).tolist()


# Every task's data: a file for us, and the same samples for PyTorch. A step takes all of them.


def pretraining(work):
    g = torch.Generator().manual_seed(1)
    arrays = {name: numpy.zeros((SAMPLES, SEQUENCE), t) for name, t in
              (("input_ids", "i4"), ("input_mask", "i1"), ("segment_ids", "i1"))}
    places, ids = numpy.zeros((SAMPLES, 4), "i4"), numpy.zeros((SAMPLES, 4), "i4")
    nexts = numpy.array([k % 2 for k in range(SAMPLES)], "i1")
    samples = []
    for k in range(SAMPLES):
        a, b = draw(g, 5, len(PIECES), 4 + k), draw(g, 5, len(PIECES), 6)
        row = [CLS, *a, SEP, *b, SEP]
        masked = sorted(set(draw(g, 1, len(a), 3)))
        labels = [row[p] for p in masked]
        for p in masked:
            row[p] = MASK
        types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        arrays["input_ids"][k, :len(row)], arrays["input_mask"][k, :len(row)] = row, 1
        arrays["segment_ids"][k, :len(row)] = types
        places[k, :len(masked)], ids[k, :len(masked)] = masked, labels
        samples.append({"ids": row, "types": types, "masked": masked, "labels": labels, "class": int(nexts[k])})
    with h5py.File(f"{work}/training_0.hdf5", "w") as f:
        for name, data in {**arrays, "masked_lm_positions": places, "masked_lm_ids": ids,
                           "next_sentence_labels": nexts}.items():
            f.create_dataset(name, data=data)
    return f"{work}/training_0.hdf5", samples


def classification(work):
    g = torch.Generator().manual_seed(2)
    samples, lines = [], ["text\tlabel"]
    for k in range(SAMPLES):
        words = [WORDS[i] for i in draw(g, 0, len(WORDS), 3 + 2 * k)]
        lines.append(" ".join(words) + f"\t{k % 3}")
        row = [CLS, *tokens(" ".join(words)), SEP]
        samples.append({"ids": row, "types": [0] * len(row), "class": k % 3})
    with open(f"{work}/train.tsv", "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return f"{work}/train.tsv", samples


def answers(work):
    g = torch.Generator().manual_seed(3)
    samples, paragraphs = [], []
    for k in range(SAMPLES):
        words = [WORDS[i] for i in draw(g, 0, 10, 8 + k)]
        first = k % 5
        context, question = " ".join(words), "who sat" if k % 2 else "where the dog ran"
        text = " ".join(words[first:first + 2])
        start = len(" ".join(words[:first])) + (1 if first else 0)
        paragraphs.append({"context": context, "qas": [
            {"id": str(k), "question": question, "answers": [{"text": text, "answer_start": start}]}]})
        asked = tokens(question)
        row = [CLS, *asked, SEP, *tokens(context), SEP]
        begin = len(asked) + 2 + first
        samples.append({"ids": row, "types": [0] * (len(asked) + 2) + [1] * (len(words) + 1), "start": begin,
                        "end": begin + 1})
    with open(f"{work}/train.json", "w", encoding="utf-8") as f:
        json.dump({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}, f)
    return f"{work}/train.json", samples


def loss_of(model, task, samples):
    cross_entropy = torch.nn.functional.cross_entropy
    total = torch.zeros(())
    masked = sum(len(s.get("masked", [])) for s in samples)
    for s in samples:
        inputs = {"input_ids": torch.tensor([s["ids"]])}
        if type(model).__name__.startswith("Bert"):
            inputs["token_type_ids"] = torch.tensor([s["types"]])
        out = model(**inputs)
        if task == "pretrain":
            logits = out.prediction_logits if hasattr(out, "prediction_logits") else out.logits
            total = total + cross_entropy(logits[0, s["masked"]], torch.tensor(s["labels"]), reduction="sum") / masked
            if hasattr(out, "seq_relationship_logits"):
                total = total + cross_entropy(out.seq_relationship_logits, torch.tensor([s["class"]])) / len(samples)
        elif task == "classify":
            total = total + cross_entropy(out.logits, torch.tensor([s["class"]])) / len(samples)
        else:
            total = total + (cross_entropy(out.start_logits, torch.tensor([s["start"]])) +
                             cross_entropy(out.end_logits, torch.tensor([s["end"]]))) / 2 / len(samples)
    return total


def expected_losses(model, task, samples):
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
                                  lr=RATE, betas=(0.9, 0.999), eps=1e-6)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, task, samples)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def flags(work, folder, task, data):
    vocabulary = f"{work}/vocab.txt"
    with open(vocabulary, "w", encoding="utf-8") as f:
        f.write("\n".join(PIECES) + "\n")
    return ["--device", "cpu", "--load-hf", folder, "--task", task, "--data-path", data, "--vocab-file", vocabulary,
            "--seq-length", SEQUENCE, "--micro-batch-size", SAMPLES, "--lr", RATE, "--lr-decay-style", "constant",
            "--weight-decay", 0.1, "--adam-eps", 1e-6, "--clip-grad", 1.0,
            "--make-vocab-size-divisible-by", 8, *question_length(task)]


def question_length(task):
    return ["--max-query-length", 8] if task == "squad" else []


def losses_of(record):
    with open(record, encoding="utf-8") as f:
        return json.load(f)["steps"]["loss"]


def weights(folder):
    with open(f"{folder}/model.safetensors", "rb") as f:
        return f.read()


def span_of(out, s):
    """The best answer that lies in the paragraph, of all pairs of tokens."""
    begin, end = s["ids"].index(SEP) + 1, len(s["ids"]) - 1
    scores = {(i, j): (out.start_logits[0, i] + out.end_logits[0, j]).item()
              for i in range(begin, end) for j in range(i, end)}
    return max(scores, key=scores.get)


def evaluates(work, folder, data, task, model, samples):
    """tally-train evaluate, with the explicit model and with autograd's, against predictions by transformers."""
    right = 0
    with torch.no_grad():
        for s in samples:
            inputs = {"input_ids": torch.tensor([s["ids"]])}
            if type(model).__name__.startswith("Bert"):
                inputs["token_type_ids"] = torch.tensor([s["types"]])
            out = model(**inputs)
            if task == "pretrain":
                continue
            if task == "classify":
                right += out.logits.argmax().item() == s["class"]
            else:
                a, b = span_of(out, s)
                right += s["ids"][a:b + 1] == s["ids"][s["start"]:s["end"] + 1]
        expected = loss_of(model, task, samples).item()
    for extra in ([], ["--reference"]):
        run("evaluate", "--device", "cpu", "--load-hf", folder, "--data-path", data, "--vocab-file",
            f"{work}/vocab.txt", "--seq-length", SEQUENCE, "--micro-batch-size", 3, *question_length(task),
            "--record", f"{work}/e.json", *extra)
        with open(f"{work}/e.json", encoding="utf-8") as f:
            results = json.load(f)["results"]
        check(results["samples"] == SAMPLES and results["tokens"] == sum(len(s["ids"]) for s in samples), "samples")
        if task == "pretrain":  # of unequal micro batches
            check(abs(results["loss"] - expected) <= 1e-5 * expected, f"loss {results['loss']}, expected {expected}")
        elif task == "classify":
            check(results["accuracy"] == right / SAMPLES, f"accuracy {results['accuracy']}, expected {right / SAMPLES}")
            check(abs(results["loss"] - expected) <= 1e-5 * expected, f"loss {results['loss']}, expected {expected}")
        else:
            check(abs(results["exact_match"] - 100 * right / SAMPLES) < 1e-9, f"{results}, {right} are right")
            check(results["f1"] >= results["exact_match"], "F1")


def compare(architecture, task, data_of, **more):
    with tempfile.TemporaryDirectory() as work:
        model = random_model(architecture, **more)
        model.save_pretrained(f"{work}/model")
        data, samples = data_of(work)
        common = flags(work, f"{work}/model", task, data)
        run(*common, "--train-iters", STEPS, "--record", f"{work}/r.json", "--save-hf", f"{work}/trained")
        ours, theirs = losses_of(f"{work}/r.json"), expected_losses(model, task, samples)
        for step, (a, b) in enumerate(zip(ours, theirs, strict=True), 1):
            check(abs(a - b) <= 2e-4 * max(b, 0.1), f"{architecture}: step {step}: loss {a}, PyTorch's {b}")
        check(theirs[-1] < 0.7 * theirs[0], f"{architecture}: the loss falls")
        trained = getattr(hf, architecture).from_pretrained(f"{work}/trained").eval()
        with torch.no_grad():
            a, b = loss_of(trained, task, samples).item(), loss_of(model, task, samples).item()
        check(abs(a - b) <= 5e-4 * max(b, 0.1), f"{architecture}: the trained model's loss is {a}, PyTorch's {b}")
        evaluates(work, f"{work}/trained", data, task, trained, samples)
        evaluates(work, f"{work}/model", data, task, random_model(architecture, **more).eval(), samples)
        # Padded rows, autograd's reference, and two processes train alike.
        for name, extra in {"--pad": ["--pad"], "--reference": ["--reference"],
                            "two processes": ["--nproc-per-node", 2, "--micro-batch-size", SAMPLES // 2],
                            "ZeRO 2": ["--nproc-per-node", 2, "--micro-batch-size", SAMPLES // 2,
                                       "--data-parallel-sharding-strategy", "optim_grads"]}.items():
            run(*common, "--train-iters", 10, "--record", f"{work}/other.json", *extra)
            for a, b in zip(losses_of(f"{work}/other.json"), ours):
                check(abs(a - b) <= 1e-5 * b, f"{architecture}: {name}: loss {a}, expected {b}")
        print(f"ok: {architecture}")


def batch_loss(model, task, samples):
    """The loss of all samples as one padded batch: transformers' own, but for answers, where it takes padding for
    tokens."""
    longest = max(len(s["ids"]) for s in samples)

    def padded(rows, filler):
        return torch.tensor([[*row, *[filler] * (longest - len(row))] for row in rows])

    inputs = {"input_ids": padded([s["ids"] for s in samples], 0),
              "attention_mask": padded([[1] * len(s["ids"]) for s in samples], 0)}
    bert = type(model).__name__.startswith("Bert")
    if bert:
        inputs["token_type_ids"] = padded([s["types"] for s in samples], 0)
    if task == "classify":
        return model(**inputs, labels=torch.tensor([s["class"] for s in samples])).loss
    if task == "pretrain":
        labels = torch.full_like(inputs["input_ids"], -100)
        for k, s in enumerate(samples):
            labels[k, s["masked"]] = torch.tensor(s["labels"])
        if bert:
            inputs["next_sentence_label"] = torch.tensor([s["class"] for s in samples])
        return model(**inputs, labels=labels).loss
    out, hidden = model(**inputs), inputs["attention_mask"] == 0
    return sum(torch.nn.functional.cross_entropy(logits.masked_fill(hidden, -torch.inf),
                                                 torch.tensor([s[which] for s in samples])) / 2
               for which, logits in (("start", out.start_logits), ("end", out.end_logits)))


def divides(architecture, task, data_of, **more):
    """Losses and norms of transformers, which takes the whole batch at once, in float64: however ours is divided."""
    steps = 8
    with tempfile.TemporaryDirectory() as work:
        model = random_model(architecture, **more)
        model.save_pretrained(f"{work}/model")
        data, samples = data_of(work)
        common = [*flags(work, f"{work}/model", task, data), "--precision", "fp64", "--global-batch-size", SAMPLES,
                  "--train-iters", steps, "--record", f"{work}/r.json"]
        model.double()
        optimizer = torch.optim.AdamW([{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
                                       {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0}],
                                      lr=RATE, betas=(0.9, 0.999), eps=1e-6)
        losses, norms = [], []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = batch_loss(model, task, samples)
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
            optimizer.step()
            losses.append(loss.item())
        for division in (["--micro-batch-size", SAMPLES], ["--micro-batch-size", 1], ["--micro-batch-size", 2],
                         ["--micro-batch-size", 1, "--reference"],
                         ["--micro-batch-size", 4, "--nproc-per-node", 2],
                         ["--micro-batch-size", 1, "--nproc-per-node", 2, "--use-distributed-optimizer"],
                         ["--micro-batch-size", 1, "--nproc-per-node", 4, "--data-parallel-sharding-strategy",
                          "optim_grads"]):
            run(*common, *division)
            with open(f"{work}/r.json", encoding="utf-8") as f:
                ours = json.load(f)["steps"]
            for name, tolerance, ours_of, theirs in (("loss", 1e-10, ours["loss"], losses),
                                                     ("norm", 1e-6, ours["grad_norm"], norms)):  # a float
                for step, (a, b) in enumerate(zip(ours_of, theirs, strict=True), 1):
                    check(abs(a - b) <= tolerance * b,
                          f"{architecture}: {division}: step {step}: {name} {a}, transformers' {b}")
        # Evaluation is over the same labels.
        expected = batch_loss(model.eval(), task, samples).item()
        run(*common, "--micro-batch-size", SAMPLES, "--save-hf", f"{work}/trained")
        for micro_batch in (1, 3, SAMPLES):
            if task == "squad":
                break  # questions have several right answers
            run("evaluate", "--device", "cpu", "--load-hf", f"{work}/trained", "--data-path", data, "--vocab-file",
                f"{work}/vocab.txt", "--seq-length", SEQUENCE, "--precision", "fp64", "--micro-batch-size", micro_batch,
                "--record", f"{work}/e.json")
            with open(f"{work}/e.json", encoding="utf-8") as f:
                loss = json.load(f)["results"]["loss"]
            check(abs(loss - expected) <= 1e-5 * expected, f"{architecture}: {micro_batch}: {loss}, not {expected}")
        print(f"ok: {architecture}: however the batch is divided")


def resumes():
    """Dropout, shuffled data and the optimizer's state go on where they were."""
    with tempfile.TemporaryDirectory() as work:
        sizes = ["--model", "bert-base", "--num-layers", 2, "--hidden-size", 32, "--num-attention-heads", 4,
                 "--vocab-size", 200, "--mock-data", "--mock-lengths", "5:32", "--seq-length", SEQUENCE, "--device",
                 "cpu", "--micro-batch-size", 4, "--global-batch-size", 8, "--lr", RATE, "--train-iters", 12]
        for task in ("pretrain", "classify", "squad"):
            common = [*sizes, "--task", task]
            run(*common, "--save-hf", f"{work}/{task}-whole")
            run(*common, "--exit-interval", 5, "--save", f"{work}/{task}")
            run(*common, "--load", f"{work}/{task}", "--save", f"{work}/{task}", "--save-hf", f"{work}/{task}-parts")
            check(weights(f"{work}/{task}-whole") == weights(f"{work}/{task}-parts"), f"{task}: a resumed run")
        done = run(*sizes, "--eval-interval", 6, "--eval-iters", 2, "--record", f"{work}/r.json")
        check("validation loss at iteration 12" in done.stdout, "validation")
        with open(f"{work}/r.json", encoding="utf-8") as f:
            results = json.load(f)["results"]
        check(5 <= results["tokens_per_sample"] <= 32 and results["samples_per_second_steady"] > 0, "samples and tokens")
        check("samples/s" in done.stdout, "samples/s in the summary")
        print("ok: a resumed run, validation, the record")


def names_classes():
    """Labels that are words are the model's classes, and a new model gets their names."""
    with tempfile.TemporaryDirectory() as work:
        _, samples = classification(work)
        model = random_model("BertForSequenceClassification", id2label={0: "tree", 1: "mat"}).eval()
        model.save_pretrained(f"{work}/model")
        common = flags(work, f"{work}/model", "classify", f"{work}/named.tsv")
        texts = [" ".join(PIECES[i] for i in s["ids"][1:-1]) for s in samples]
        with torch.no_grad():
            classes = [model(input_ids=torch.tensor([s["ids"]])).logits.argmax().item() for s in samples]
        named = [model.config.id2label[c] for c in classes]
        named[0] = "mat" if named[0] == "tree" else "tree"  # one is wrong, and both names are there

        def write(labels):
            with open(f"{work}/named.tsv", "w", encoding="utf-8") as f:
                f.write("text\tlabel\n" + "".join(f"{t}\t{n}\n" for t, n in zip(texts, labels)))

        def accuracy(folder):
            run("evaluate", "--device", "cpu", "--load-hf", folder, "--data-path", f"{work}/named.tsv", "--vocab-file",
                f"{work}/vocab.txt", "--seq-length", SEQUENCE, "--record", f"{work}/e.json")
            with open(f"{work}/e.json", encoding="utf-8") as f:
                return json.load(f)["results"]["accuracy"]

        expected = (SAMPLES - 1) / SAMPLES
        write(named)
        check(accuracy(f"{work}/model") == expected, "words")
        write(["01"[n == "mat"] for n in named])
        check(accuracy(f"{work}/model") == expected, "numbers")
        write(["tree", "shrub"] * 4)
        error = run("evaluate", "--device", "cpu", "--load-hf", f"{work}/model", "--data-path", f"{work}/named.tsv",
                    "--vocab-file", f"{work}/vocab.txt", code=2).stderr
        check("named.tsv:3:" in error and "the label \"shrub\" is not one of the model's classes: tree, mat" in error, error)
        random_model("BertForSequenceClassification").save_pretrained(f"{work}/model")
        done = run(*common, "--train-iters", 1, "--save-hf", f"{work}/trained")
        check("0 = \"shrub\", 1 = \"tree\"" in done.stderr, done.stderr)
        check(hf.AutoConfig.from_pretrained(f"{work}/trained").id2label == {0: "shrub", 1: "tree"}, "saved names")
        print("ok: the names of classes")


def refuses():
    """Wrong input ends with code 2 before anything starts, and what is cut is said."""
    with tempfile.TemporaryDirectory() as work:
        shard, _ = pretraining(work)
        table, _ = classification(work)
        squad, _ = answers(work)
        random_model("BertForPreTraining").save_pretrained(f"{work}/model")
        random_model("BertForQuestionAnswering").save_pretrained(f"{work}/reader")
        random_model("BertForSequenceClassification", num_labels=3).save_pretrained(f"{work}/classifier")
        common = flags(work, f"{work}/model", "pretrain", shard)
        run(*common, "--train-iters", 1, "--save", f"{work}/saved")
        vocabulary = f"{work}/vocab.txt"
        exam = ["evaluate", "--device", "cpu", "--vocab-file", vocabulary, "--load-hf"]
        with open(squad, encoding="utf-8") as f:
            unanswerable = json.load(f)
        unanswerable["data"][0]["paragraphs"][0]["qas"][0]["answers"] = []
        with open(f"{work}/two.json", "w", encoding="utf-8") as f:
            json.dump(unanswerable, f)
        for words, message in [
                ([*exam, f"{work}/model", "--task", "classify", "--data-path", table], "has no weights of classifier"),
                ([*exam, f"{work}/model", "--data-path", shard, "--seq-length", 16],
                 f"{shard} has samples of {SEQUENCE} tokens: give --seq-length {SEQUENCE}"),
                ([*exam, f"{work}/reader", "--data-path", table], "is a table, which --task classify reads"),
                ([*exam, f"{work}/reader", "--data-path", f"{work}/two.json"], "give --version-2-with-negative"),
                (["--device", "cpu", "--load", f"{work}/saved", "--task", "classify", "--num-classes", 3, "--data-path",
                  table, "--vocab-file", vocabulary, "--train-iters", 2, "--seq-length", SEQUENCE], "add --finetune"),
                (["prepare", "--task", "bert", "--input", vocabulary, "--output", vocabulary, "--vocab-file", vocabulary,
                  "--tokenizer-type", "BertWordPieceLowerCase"], f"--output: '{vocabulary}' is a file")]:
            error = run(*words, code=2).stderr
            check(message in error and error.count("\n") == 1, f"expected {message}: {error}")
        done = run(*exam, f"{work}/classifier", "--data-path", table, "--seq-length", 8)
        # The texts have 3, 5, ... 17 words, and [CLS] and [SEP] take two places.
        check(f"6 of the {SAMPLES} texts of {table} were cut at --seq-length 8" in done.stderr, done.stderr)
        print("ok: what is refused")


resumes()
refuses()
names_classes()
compare("BertForPreTraining", "pretrain", pretraining)
compare("DistilBertForMaskedLM", "pretrain", pretraining)
divides("BertForPreTraining", "pretrain", pretraining)
divides("DistilBertForMaskedLM", "pretrain", pretraining)
divides("BertForSequenceClassification", "classify", classification, num_labels=3)
divides("BertForQuestionAnswering", "squad", answers)
for of in ("Bert", "DistilBert"):
    compare(of + "ForSequenceClassification", "classify", classification, num_labels=3)
    compare(of + "ForQuestionAnswering", "squad", answers)
