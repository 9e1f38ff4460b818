"""S3 clients configure rules and work with objects; a Kafka consumer sees exactly the events that were to be expected.

The notifier is started with its own broker. boto3, the AWS CLI and minio-py are unmodified; kafka-python reads.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import io
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator

import boto3
import botocore.config
import botocore.exceptions
import minio
import urllib3
from kafka import KafkaConsumer, TopicPartition
from minio.commonconfig import CopySource, Tags
from minio.notificationconfig import NotificationConfig, PrefixFilterRule, QueueConfig, SuffixFilterRule

import harness
from harness import check, passed

ARN = "arn:minio:sqs::local:kafka"
TOPIC = "bucket-events"
ACCESS, SECRET = "access-of-tests", "secret-of-tests-0123456789"
# Blanks, `+`, `%`, what HTML and JSON escape, other scripts, and a long one.
KEYS = [
    "plain.txt",
    "a b/c d.txt",
    "one+two.txt",
    "100%.txt",
    "%41%2F.txt",
    "quote\"<&>'.txt",
    "\u00e9\u00fc\u65e5\u672c\U0001f4f7.txt",
    # s3s-fs keeps what it knows of an object in a file that is named after the key in Base64: longer keys are refused.
    "/".join(["k" * 25] * 5) + "/y",
]


class Notifier:
    """The program on free ports, with a folder of its own."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path, *more: str, env: dict[str, str] | None = None) -> None:
        self.program, self.folder, self.more, self.env = program, folder, more, env or {}
        self.s3, self.kafka = harness.free_port(), harness.free_port()
        self.process: subprocess.Popen[str] | None = None
        self.lines: list[str] = []

    def start(self) -> None:
        env = dict(os.environ, KOLUMN_ACCESS_KEY=ACCESS, KOLUMN_SECRET_KEY=SECRET, **self.env)
        command = [str(self.program), "--data", str(self.folder), "--s3", f"127.0.0.1:{self.s3}"]
        command += ["--kafka", f"127.0.0.1:{self.kafka}", *self.more]
        with open(self.folder.with_suffix(".log"), "a") as log:
            self.process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if line.startswith("stop with"):
                break
        else:
            raise harness.Failed(f"the notifier ended: {self.lines}")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self, by: int = signal.SIGTERM) -> int:
        self.process.send_signal(by)
        code = self.process.wait(60)
        self.process = None
        return code

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.s3}"

    def boto(self):
        config = botocore.config.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})
        return boto3.client(
            "s3", endpoint_url=self.url, aws_access_key_id=ACCESS, aws_secret_access_key=SECRET, region_name="us-east-1", config=config
        )

    def minio(self) -> minio.Minio:
        return minio.Minio(f"127.0.0.1:{self.s3}", access_key=ACCESS, secret_key=SECRET, secure=False)

    def aws(self, *words: str) -> str:
        env = dict(os.environ, AWS_ACCESS_KEY_ID=ACCESS, AWS_SECRET_ACCESS_KEY=SECRET, AWS_DEFAULT_REGION="us-east-1")
        program = pathlib.Path(sys.executable).with_name("aws")
        done = subprocess.run([program, "--endpoint-url", self.url, *words], env=env, capture_output=True, text=True)
        check(done.returncode == 0, f"aws {' '.join(words[:3])} succeeds", done.stderr)
        return done.stdout


@contextlib.contextmanager
def running(program: pathlib.Path, folder: pathlib.Path, *more: str, env: dict[str, str] | None = None) -> Iterator[Notifier]:
    notifier = Notifier(program, folder, *more, env=env)
    notifier.start()
    try:
        yield notifier
    finally:
        if notifier.process is not None:
            notifier.process.kill()
            notifier.process.wait()


class Events:
    """What a consumer of the topic has seen and nobody has asked for yet."""

    def __init__(self, notifier: Notifier) -> None:
        address = f"127.0.0.1:{notifier.kafka}"
        self.consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False)
        self.consumer.assign([TopicPartition(TOPIC, 0)])

    def take(self, count: int, seconds: float = 20.0) -> list[tuple[str, dict]]:
        """So many events with their keys, and no more within a moment."""
        found: list[tuple[str, dict]] = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            batches = self.consumer.poll(timeout_ms=300)
            for records in batches.values():
                found += [(record.key.decode(), json.loads(record.value)) for record in records]
            if len(found) >= count and not batches:
                break
        check(len(found) == count, f"{count} events arrive", [(key, event["EventName"]) for key, event in found])
        return found


@dataclasses.dataclass
class Expected:
    name: str
    bucket: str
    key: str
    size: int | None = None
    etag: str | None = None
    request_id: str | None = None


def compare(found: tuple[str, dict], expected: Expected, notifier: Notifier) -> None:
    """Field by field what MinIO documents."""
    key, value = found
    wanted = f"{expected.bucket}/{expected.key}"
    check(key == wanted, "the record's key is bucket/key", (key, wanted))
    check(list(value) == ["EventName", "Key", "Records"], "the envelope has three fields", list(value))
    check(value["EventName"] == f"s3:{expected.name}", "the envelope names the event", value["EventName"])
    check(value["Key"] == wanted, "the envelope's key is as it is", value["Key"])
    (record,) = value["Records"]
    fields = ["eventVersion", "eventSource", "awsRegion", "eventTime", "eventName", "userIdentity", "requestParameters"]
    fields += ["responseElements", "s3", "source"]
    check(list(record) == fields, "the record's fields are those documented", list(record))
    check((record["eventVersion"], record["eventSource"]) == ("2.0", "minio:s3"), "version and source", record)
    moment = datetime.datetime.fromisoformat(record["eventTime"].replace("Z", "+00:00"))
    age = abs((datetime.datetime.now(datetime.timezone.utc) - moment).total_seconds())
    check(age < 120, "the time is now", record["eventTime"])
    check(record["eventName"] == f"s3:{expected.name}", "the record names the event", record["eventName"])
    check(record["userIdentity"] == {"principalId": ACCESS}, "the requester is told", record["userIdentity"])
    check(record["requestParameters"]["sourceIPAddress"] == "127.0.0.1", "where the request came from", record)
    answer = record["responseElements"]
    check(answer["x-minio-origin-endpoint"] == notifier.url, "where the server is", answer)
    if expected.request_id is not None:
        check(answer["x-amz-request-id"] == expected.request_id, "the id of the answer is that of the event", answer)
    s3 = record["s3"]
    check(s3["bucket"]["name"] == expected.bucket and s3["bucket"]["arn"] == f"arn:aws:s3:::{expected.bucket}", "the bucket", s3)
    encoded = urllib.parse.quote_plus(expected.key)
    check(s3["object"]["key"] == encoded, "the object's key is encoded", (s3["object"]["key"], encoded))
    check(len(s3["object"]["sequencer"]) == 16, "there is a sequencer", s3["object"])
    if expected.size is not None:
        check(s3["object"].get("size", 0) == expected.size, "the size", s3["object"])
    if expected.etag is not None:
        check(s3["object"]["eTag"] == expected.etag, "the ETag", (s3["object"], expected.etag))


def rules_of_every_client(notifier: Notifier) -> None:
    """Each client writes rules, and each reads what the others wrote."""
    client, other = notifier.boto(), notifier.minio()
    client.create_bucket(Bucket="rules")
    check("QueueConfigurations" not in client.get_bucket_notification_configuration(Bucket="rules"), "no rules at first")
    rule = {
        "Id": "one",
        "QueueArn": ARN,
        "Events": ["s3:ObjectCreated:*"],
        "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": "a b/"}, {"Name": "suffix", "Value": ".jpg"}]}},
    }
    client.put_bucket_notification_configuration(Bucket="rules", NotificationConfiguration={"QueueConfigurations": [rule]})
    (found,) = client.get_bucket_notification_configuration(Bucket="rules")["QueueConfigurations"]
    names = sorted((one["Name"].lower(), one["Value"]) for one in found["Filter"]["Key"]["FilterRules"])
    check((found["QueueArn"], found["Events"], names) == (ARN, rule["Events"], [("prefix", "a b/"), ("suffix", ".jpg")]), "boto3 reads its rule", found)
    read = other.get_bucket_notification("rules").queue_config_list
    check(len(read) == 1 and read[0].queue == ARN and read[0].events == ["s3:ObjectCreated:*"], "minio-py reads boto3's rule", read)
    config = NotificationConfig(
        queue_config_list=[
            QueueConfig(queue=ARN, events=["s3:ObjectRemoved:*"], config_id="two", prefix_filter_rule=PrefixFilterRule("p/"), suffix_filter_rule=SuffixFilterRule("s"))
        ]
    )
    other.set_bucket_notification("rules", config)
    shown = json.loads(notifier.aws("s3api", "get-bucket-notification-configuration", "--bucket", "rules"))
    check(shown["QueueConfigurations"][0]["Events"] == ["s3:ObjectRemoved:*"], "the AWS CLI reads minio-py's rule", shown)
    text = json.dumps({"QueueConfigurations": [{"QueueArn": ARN, "Events": ["s3:ObjectCreated:Put"]}]})
    notifier.aws("s3api", "put-bucket-notification-configuration", "--bucket", "rules", "--notification-configuration", text)
    passed("boto3, minio-py and the AWS CLI write rules and read each other's")

    for wrong, code in [
        ({"QueueConfigurations": [{"QueueArn": "arn:minio:sqs::nobody:kafka", "Events": ["s3:ObjectCreated:*"]}]}, "InvalidArgument"),
        ({"QueueConfigurations": [{"QueueArn": ARN, "Events": ["put"]}]}, "InvalidArgument"),
        ({"TopicConfigurations": [{"TopicArn": ARN, "Events": ["s3:ObjectCreated:*"]}]}, "UnsupportedNotification"),
        ({"QueueConfigurations": [{"QueueArn": ARN, "Events": ["s3:ObjectCreated:*"]}] * 2}, "InvalidArgument"),
    ]:
        try:
            client.put_bucket_notification_configuration(Bucket="rules", NotificationConfiguration=wrong)
        except botocore.exceptions.ClientError as error:
            check(error.response["Error"]["Code"] == code, "the refusal has S3's code", error.response)
        else:
            raise harness.Failed(f"{wrong} was taken")
    kept = client.get_bucket_notification_configuration(Bucket="rules")["QueueConfigurations"]
    check(kept[0]["Events"] == ["s3:ObjectCreated:Put"], "a refused configuration changes nothing", kept)
    try:
        client.put_bucket_notification_configuration(Bucket="absent", NotificationConfiguration={})
    except botocore.exceptions.ClientError as error:
        check(error.response["Error"]["Code"] == "NoSuchBucket", "a bucket has to exist", error.response)
    else:
        raise harness.Failed("rules of a bucket that does not exist were taken")
    client.put_bucket_notification_configuration(Bucket="rules", NotificationConfiguration={})
    check("QueueConfigurations" not in client.get_bucket_notification_configuration(Bucket="rules"), "an empty configuration removes all")
    passed("rules that are wrong are refused with S3's codes and change nothing")


def all_events(notifier: Notifier, bucket: str) -> None:
    client = notifier.boto()
    client.create_bucket(Bucket=bucket)
    rule = {"QueueArn": ARN, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}
    client.put_bucket_notification_configuration(Bucket=bucket, NotificationConfiguration={"QueueConfigurations": [rule]})


def boto_events(notifier: Notifier, events: Events) -> None:
    client = notifier.boto()
    all_events(notifier, "photos")
    expected = []

    def told(name: str, answer: dict, key: str, **more: object) -> None:
        request_id = answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-request-id")
        check(request_id is not None and len(request_id) == 16, "an answer has an id", answer)
        expected.append(Expected(name, "photos", key, request_id=request_id, **more))

    for number, key in enumerate(KEYS):
        body = b"x" * number
        answer = client.put_object(Bucket="photos", Key=key, Body=body, Metadata={"camera": "old"})
        told("ObjectCreated:Put", answer, key, size=number, etag=answer["ETag"].strip('"'))
    answer = client.copy_object(Bucket="photos", Key="copy of a b", CopySource={"Bucket": "photos", "Key": KEYS[1]})
    told("ObjectCreated:Copy", answer, "copy of a b", size=1)
    upload = client.create_multipart_upload(Bucket="photos", Key="parts/one two")["UploadId"]
    parts = []
    for number, body in [(1, b"p" * (5 << 20)), (2, b"q" * 7)]:
        part = client.upload_part(Bucket="photos", Key="parts/one two", UploadId=upload, PartNumber=number, Body=body)
        parts.append({"PartNumber": number, "ETag": part["ETag"]})
    answer = client.complete_multipart_upload(
        Bucket="photos", Key="parts/one two", UploadId=upload, MultipartUpload={"Parts": parts}
    )
    told("ObjectCreated:CompleteMultipartUpload", answer, "parts/one two", size=(5 << 20) + 7)
    tags = {"TagSet": [{"Key": "colour", "Value": "red + blue"}]}
    told("ObjectCreated:PutTagging", client.put_object_tagging(Bucket="photos", Key=KEYS[1], Tagging=tags), KEYS[1])
    read = client.get_object_tagging(Bucket="photos", Key=KEYS[1])["TagSet"]
    check(read == tags["TagSet"], "tags are kept", read)
    told("ObjectCreated:DeleteTagging", client.delete_object_tagging(Bucket="photos", Key=KEYS[1]), KEYS[1])
    for key in KEYS[:2]:
        told("ObjectRemoved:Delete", client.delete_object(Bucket="photos", Key=key), key)
    answer = client.delete_objects(Bucket="photos", Delete={"Objects": [{"Key": key} for key in KEYS[2:5]]})
    for key in KEYS[2:5]:
        told("ObjectRemoved:Delete", answer, key)
    for refused in [
        lambda: client.put_object(Bucket="photos", Key=KEYS[5], Body=b"", IfNoneMatch="*"),
        lambda: client.copy_object(Bucket="photos", Key="k", CopySource={"Bucket": "photos", "Key": "absent"}),
        lambda: client.put_object(Bucket="photos", Key="k", Body=b"x", ChecksumCRC32="AAAAAA=="),
    ]:
        try:
            refused()
        except botocore.exceptions.ClientError:
            continue
        raise harness.Failed("what cannot be done was done")
    found = sorted(events.take(len(expected)), key=sequence)
    # The keys of one request are removed in any order.
    found[-3:] = sorted(found[-3:], key=lambda one: KEYS.index(one[0].removeprefix("photos/")))
    for one, wanted in zip(found, expected, strict=True):
        compare(one, wanted, notifier)
    first = found[0][1]["Records"][0]["s3"]["object"]
    check(first["userMetadata"].get("X-Amz-Meta-Camera") == "old", "metadata is told", first)
    passed(f"{len(expected)} operations of boto3 are told field by field, and those that failed are not")


def sequence(found: tuple[str, dict]) -> str:
    return found[1]["Records"][0]["s3"]["object"]["sequencer"]


def command_line_events(notifier: Notifier, events: Events) -> None:
    all_events(notifier, "cli")
    file = notifier.folder / "file.txt"
    file.write_text("hello")
    notifier.aws("s3", "cp", str(file), "s3://cli/a b+c.txt")
    notifier.aws("s3", "mv", "s3://cli/a b+c.txt", "s3://cli/moved.txt")
    notifier.aws("s3", "rm", "s3://cli/moved.txt")
    expected = [
        Expected("ObjectCreated:Put", "cli", "a b+c.txt", size=5),
        Expected("ObjectCreated:Copy", "cli", "moved.txt", size=5),
        Expected("ObjectRemoved:Delete", "cli", "a b+c.txt"),
        Expected("ObjectRemoved:Delete", "cli", "moved.txt"),
    ]
    for one, wanted in zip(sorted(events.take(4), key=sequence), expected, strict=True):
        compare(one, wanted, notifier)
    passed("cp, mv and rm of the AWS CLI are told")


def minio_events(notifier: Notifier, events: Events) -> None:
    client = notifier.minio()
    all_events(notifier, "minio")
    heard: queue.Queue[dict] = queue.Queue()
    ready = threading.Event()

    def listen() -> None:
        # The stream ends with the notifier.
        with contextlib.suppress(urllib3.exceptions.HTTPError), client.listen_bucket_notification("minio", prefix="a ", events=("s3:ObjectCreated:*", "s3:ObjectRemoved:*")) as lines:
            ready.set()
            for line in lines:
                heard.put(line)

    threading.Thread(target=listen, daemon=True).start()
    ready.wait(10)
    # Who listens is told of what happens from then on: one object after the other until one is heard.
    count = 0
    while heard.empty():
        count += 1
        check(count < 100, "somebody hears")
        client.put_object("minio", f"a {count}", io.BytesIO(b"abc"), 3)
        time.sleep(0.1)
    client.put_object("minio", "b", io.BytesIO(b"abcd"), 4)
    client.copy_object("minio", "a copy", CopySource("minio", "b"))
    tags = Tags.new_object_tags()
    tags["colour"] = "red"
    client.set_object_tags("minio", "b", tags)
    client.remove_object("minio", "a copy")
    expected = [Expected("ObjectCreated:Put", "minio", f"a {number + 1}", size=3) for number in range(count)]
    expected += [
        Expected("ObjectCreated:Put", "minio", "b", size=4),
        Expected("ObjectCreated:Copy", "minio", "a copy", size=4),
        Expected("ObjectCreated:PutTagging", "minio", "b"),
        Expected("ObjectRemoved:Delete", "minio", "a copy"),
    ]
    for one, wanted in zip(sorted(events.take(len(expected)), key=sequence), expected, strict=True):
        compare(one, wanted, notifier)
    lines = []
    while not lines or lines[-1]["Records"][0]["eventName"] != "s3:ObjectRemoved:Delete":
        lines.append(heard.get(timeout=10))
    keys = [line["Records"][0]["s3"]["object"]["key"] for line in lines]
    check(keys[-2:] == ["a copy", "a copy"] and "b" not in keys, "the listener hears its prefix only", keys)
    passed("operations of minio-py are told, and its listener hears those of its prefix")


def rules_outlive(notifier: Notifier) -> None:
    before = notifier.boto().get_bucket_notification_configuration(Bucket="photos")["QueueConfigurations"]
    for by in [signal.SIGTERM, signal.SIGKILL]:
        code = notifier.stop(by)
        check(by == signal.SIGKILL or code == 0, "the notifier stops in order", code)
        notifier.start()
        after = notifier.boto().get_bucket_notification_configuration(Bucket="photos")["QueueConfigurations"]
        check(after == before, "rules are what they were", after)
        check(any(ARN in line for line in notifier.lines), "the targets are told at the start", notifier.lines)
    events = Events(notifier)
    events.consumer.seek_to_end()
    events.consumer.position(TopicPartition(TOPIC, 0))
    notifier.boto().put_object(Bucket="photos", Key="after", Body=b"1")
    compare(events.take(1)[0], Expected("ObjectCreated:Put", "photos", "after", size=1), notifier)
    passed("rules and events go on after a stop and after a kill")


def default_events(program: pathlib.Path, folder: pathlib.Path) -> None:
    """Without a word of configuration, every bucket's objects are events."""
    with running(program, folder) as notifier:
        notifier.boto().create_bucket(Bucket="any")
        notifier.boto().put_object(Bucket="any", Key="k", Body=b"12")
        compare(Events(notifier).take(1)[0], Expected("ObjectCreated:Put", "any", "k", size=2), notifier)
        check(notifier.stop() == 0, "the notifier stops in order")
    passed("a notifier that nobody has configured tells of every bucket")


def run(options, folder: pathlib.Path) -> None:
    with running(options.broker, folder / "rules", "--events", "none") as notifier:
        rules_of_every_client(notifier)
        events = Events(notifier)
        boto_events(notifier, events)
        command_line_events(notifier, events)
        minio_events(notifier, events)
        rules_outlive(notifier)
    default_events(options.broker, folder / "default")


if __name__ == "__main__":
    harness.main(run, harness.arguments(__doc__))
