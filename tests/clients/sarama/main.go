// Command sarama runs one scenario of the client matrix with sarama:
//
//	sarama BOOTSTRAP SCENARIO key=value...
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

	"github.com/IBM/sarama"
)

// scenario is what the command line asks for.
type scenario struct {
	bootstrap []string
	arguments map[string]string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sarama:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) < 2 {
		return errors.New("usage: sarama BOOTSTRAP produce|read|group|churn key=value...")
	}
	s := scenario{bootstrap: []string{words[0]}, arguments: map[string]string{}}
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

// settings are those that every scenario shares. The newest version lets sarama use whatever the broker announces.
func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	// A broker that comes back within a session must find its members patient.
	config.Metadata.Retry.Max = 40
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

// produce writes the seed's records and waits for every acknowledgement.
func (s scenario) produce() error {
	config := settings()
	if err := config.Producer.Compression.UnmarshalText([]byte(s.text("codec", "none"))); err != nil {
		return err
	}
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	config.Producer.Flush.Frequency = 20 * time.Millisecond
	producer, err := sarama.NewSyncProducer(s.bootstrap, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	topic, partitions, count := s.text("topic", ""), s.number("partitions", 1), s.number("count", 0)
	var records []*sarama.ProducerMessage
	for i := range count {
		records = append(records, record(topic, s.text("seed", "0"), i, partitions))
	}
	if s.text("big", "0") == "1" {
		records = append(records, bigRecord(topic, count, partitions))
	}
	if err := producer.SendMessages(records); err != nil {
		return err
	}
	printLine(map[string]int{"produced": len(records)})
	return nil
}

// read takes every partition from its beginning, without a group.
func (s scenario) read() error {
	consumer, err := sarama.NewConsumer(s.bootstrap, settings())
	if err != nil {
		return err
	}
	defer consumer.Close()
	records := make(chan *sarama.ConsumerMessage)
	failures := make(chan error)
	for partition := range s.number("partitions", 1) {
		claim, err := consumer.ConsumePartition(s.text("topic", ""), int32(partition), sarama.OffsetOldest)
		if err != nil {
			return err
		}
		go forward(claim, records, failures)
	}
	limit := time.After(s.limit())
	expected := s.number("expect", 0)
	for seen := range expected {
		select {
		case r := <-records:
			show(r)
		case err := <-failures:
			return err
		case <-limit:
			return fmt.Errorf("only %d of %d records came", seen, expected)
		}
	}
	return nil
}

func (s scenario) limit() time.Duration { return time.Duration(s.number("timeout", 60)) * time.Second }

// forward passes on what a partition gives; it ends with the program.
func forward(claim sarama.PartitionConsumer, records chan<- *sarama.ConsumerMessage, failures chan<- error) {
	for {
		select {
		case r := <-claim.Messages():
			records <- r
		case err := <-claim.Errors():
			failures <- err
		}
	}
}

// group reads as the only member of a group, commits, leaves, and asks the broker what is committed.
func (s scenario) group() error {
	topic, name := s.text("topic", ""), s.text("group", "")
	member, err := sarama.NewConsumerGroup(s.bootstrap, name, settings())
	if err != nil {
		return err
	}
	running, cancel := context.WithTimeout(context.Background(), s.limit())
	defer cancel()
	reader := &reader{missing: s.number("expect", 0), done: cancel}
	for running.Err() == nil {
		if err := member.Consume(running, []string{topic}, reader); err != nil {
			return err
		}
	}
	if err := member.Close(); err != nil {
		return err
	}
	for err := range member.Errors() {
		return err
	}
	if reader.missing > 0 {
		return fmt.Errorf("%d of %d records did not come", reader.missing, s.number("expect", 0))
	}
	return s.committed(name, topic)
}

func (s scenario) committed(group, topic string) error {
	admin, err := sarama.NewClusterAdmin(s.bootstrap, settings())
	if err != nil {
		return err
	}
	defer admin.Close()
	answer, err := admin.ListConsumerGroupOffsets(group, nil)
	if err != nil {
		return err
	}
	offsets := map[int32]int64{}
	for partition, block := range answer.Blocks[topic] {
		if !errors.Is(block.Err, sarama.ErrNoError) {
			return block.Err
		}
		offsets[partition] = block.Offset
	}
	printLine(map[string]any{"committed": offsets})
	return nil
}

// churn is a member of a group whose others come and go. It tells what it is given, reads and commits.
func (s scenario) churn() error {
	config := settings()
	config.ClientID = s.text("id", "sarama")
	config.Consumer.Group.InstanceId = s.text("instance", "")
	config.Consumer.Group.Session.Timeout = time.Duration(s.number("session_ms", 6000)) * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.Rebalance.Timeout = 10 * time.Second
	strategy := sarama.NewBalanceStrategyRange()
	if s.text("strategy", "range") == "cooperative" {
		strategy = sarama.NewBalanceStrategyCooperativeSticky()
	}
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	client, err := sarama.NewClient(s.bootstrap, config)
	if err != nil {
		return err
	}
	defer client.Close()
	group := s.text("group", "")
	member, err := sarama.NewConsumerGroupFromClient(group, client)
	if err != nil {
		return err
	}
	defer member.Close()
	go func() {
		for err := range member.Errors() {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ended, cancel := context.WithTimeout(ended, time.Duration(s.number("seconds", 20))*time.Second)
	defer cancel()
	for ended.Err() == nil {
		if err := member.Consume(ended, []string{s.text("topic", "")}, churner{client: client, group: group}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return nil
}
