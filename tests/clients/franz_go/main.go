// Command franz_go runs one scenario of the client matrix with franz-go:
//
//	franz_go BOOTSTRAP SCENARIO key=value...
//
// It prints JSON lines; an exit code other than 0 says that the scenario failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// pollTime and recordsPerPoll bound what a member of a churning group takes at a time.
const (
	pollTime       = 200 * time.Millisecond
	recordsPerPoll = 500
)

// scenario is what the command line asks for.
type scenario struct {
	bootstrap string
	arguments map[string]string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "franz_go:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) < 2 {
		return errors.New("usage: franz_go BOOTSTRAP produce|read|group|churn key=value...")
	}
	s := scenario{bootstrap: words[0], arguments: map[string]string{}}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		s.arguments[name] = value
	}
	defer flushLines()
	switch words[1] {
	case "produce":
		return s.produce()
	case "read":
		return s.read()
	case "group":
		return s.group()
	case "churn":
		return s.churn()
	}
	return fmt.Errorf("%q is not a scenario", words[1])
}

func (s scenario) text(name, otherwise string) string {
	if value, given := s.arguments[name]; given {
		return value
	}
	return otherwise
}

func (s scenario) number(name string, otherwise int) int {
	value, err := strconv.Atoi(s.text(name, strconv.Itoa(otherwise)))
	if err != nil {
		panic(fmt.Sprintf("%s is not a number: %v", name, err))
	}
	return value
}

// produce writes the seed's records and waits for every acknowledgement.
func (s scenario) produce() error {
	codec, known := map[string]kgo.CompressionCodec{
		"none":   kgo.NoCompression(),
		"gzip":   kgo.GzipCompression(),
		"snappy": kgo.SnappyCompression(),
		"lz4":    kgo.Lz4Compression(),
		"zstd":   kgo.ZstdCompression(),
	}[s.text("codec", "none")]
	if !known {
		return fmt.Errorf("codec %q is not known", s.text("codec", "none"))
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(s.bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codec),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(20*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	topic, partitions, count := s.text("topic", ""), s.number("partitions", 1), s.number("count", 0)
	var records []*kgo.Record
	for i := range count {
		records = append(records, record(topic, s.text("seed", "0"), i, partitions))
	}
	if s.text("big", "0") == "1" {
		records = append(records, bigRecord(topic, count, partitions))
	}
	// A limit on delivery would count from the records' own timestamps, which are years old.
	limit, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := client.ProduceSync(limit, records...).FirstErr(); err != nil {
		return err
	}
	printLine(map[string]int{"produced": len(records)})
	return nil
}

// read takes every partition from its beginning, without a group.
func (s scenario) read() error {
	starts := map[int32]kgo.Offset{}
	for partition := range s.number("partitions", 1) {
		starts[int32(partition)] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(s.bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.text("topic", ""): starts}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	return s.poll(client)
}

// poll shows records until as many as expected were read.
func (s scenario) poll(client *kgo.Client) error {
	limit, cancel := context.WithTimeout(context.Background(), time.Duration(s.number("timeout", 60))*time.Second)
	defer cancel()
	expected := s.number("expect", 0)
	for seen := 0; seen < expected; {
		fetches := client.PollFetches(limit)
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("after %d of %d records: %w", seen, expected, err)
		}
		fetches.EachRecord(show)
		seen += fetches.NumRecords()
	}
	return nil
}

// group reads as the only member of a group, commits, leaves, and asks the broker what is committed.
func (s scenario) group() error {
	group := s.text("group", "")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(s.bootstrap),
		kgo.ConsumeTopics(s.text("topic", "")),
		kgo.ConsumerGroup(group),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := s.poll(client); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := client.CommitUncommittedOffsets(limit); err != nil {
		return err
	}
	if err := client.LeaveGroupContext(limit); err != nil {
		return err
	}
	fetched, err := kadm.NewClient(client).FetchOffsets(limit, group)
	if err != nil {
		return err
	}
	if err := fetched.Error(); err != nil {
		return err
	}
	committed := map[int32]int64{}
	fetched.Each(func(offset kadm.OffsetResponse) { committed[offset.Partition] = offset.At })
	printLine(map[string]any{"committed": committed})
	return nil
}

// churn is a member of a group whose others come and go. It tells what it is given, reads and commits.
func (s scenario) churn() error {
	balancer := kgo.RangeBalancer()
	if s.text("strategy", "range") == "cooperative" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	topic := s.text("topic", "")
	taken := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		printLine(map[string]any{"revoked": list(partitions[topic])})
		flushLines()
	}
	given := func(_ context.Context, client *kgo.Client, partitions map[string][]int32) {
		member, generation := client.GroupMetadata()
		printLine(map[string]any{"assigned": list(partitions[topic]), "gen": generation, "member": member})
		flushLines()
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(s.bootstrap),
		kgo.ClientID(s.text("id", "franz-go")),
		kgo.ConsumeTopics(topic),
		kgo.ConsumerGroup(s.text("group", "")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(time.Duration(s.number("session_ms", 6000)) * time.Millisecond),
		kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.RebalanceTimeout(10 * time.Second),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(given),
		kgo.OnPartitionsRevoked(taken),
		kgo.OnPartitionsLost(taken),
	}
	if instance := s.text("instance", ""); instance != "" {
		options = append(options, kgo.InstanceID(instance))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ended, cancel := context.WithTimeout(ended, time.Duration(s.number("seconds", 20))*time.Second)
	defer cancel()
	for ended.Err() == nil {
		// A commit that was refused is repeated even if nothing more comes.
		soon, cancel := context.WithTimeout(ended, pollTime)
		fetches := client.PollRecords(soon, recordsPerPoll)
		cancel()
		fetches.EachError(func(_ string, partition int32, err error) {
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				fmt.Fprintf(os.Stderr, "partition %d: %v\n", partition, err)
			}
		})
		fetches.EachRecord(func(r *kgo.Record) {
			printLine(map[string]any{"r": []any{r.Partition, r.Offset, string(r.Value)}})
		})
		flushLines()
		if len(client.UncommittedOffsets()) > 0 {
			commit(client)
		}
		client.AllowRebalance()
	}
	return nil
}

// commit commits what was polled, and tells what the broker accepted.
func commit(client *kgo.Client) {
	limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client.CommitOffsetsSync(limit, client.UncommittedOffsets(), func(_ *kgo.Client, asked *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		offsets, failure := map[int32]int64{}, err
		for _, t := range asked.Topics {
			for _, partition := range t.Partitions {
				offsets[partition.Partition] = partition.Offset
			}
		}
		if err == nil {
			for _, t := range answer.Topics {
				for _, partition := range t.Partitions {
					if refused := kerr.ErrorForCode(partition.ErrorCode); refused != nil {
						failure = refused
						delete(offsets, partition.Partition)
					}
				}
			}
		} else {
			clear(offsets)
		}
		if len(offsets) > 0 {
			printLine(map[string]any{"commit": offsets, "gen": asked.Generation, "member": asked.MemberID})
		}
		if failure != nil {
			printLine(map[string]any{"commit_failed": failure.Error(), "gen": asked.Generation})
		}
		flushLines()
	})
}

// list turns a missing list into an empty one, which JSON tells apart.
func list(partitions []int32) []int32 {
	if partitions == nil {
		return []int32{}
	}
	return partitions
}
