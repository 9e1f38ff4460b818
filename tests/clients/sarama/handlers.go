// What a member does with the partitions that it is given.

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// recordsPerCommit bounds what a member reads of a partition before it commits.
const recordsPerCommit = 500

// commitAgainAfter is how soon a commit that was refused, as all are while a group is between two generations, is repeated.
const commitAgainAfter = 200 * time.Millisecond

// reader shows records until none is missing, and commits with the last.
type reader struct {
	sync.Mutex
	missing int
	done    context.CancelFunc
}

func (*reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		r.take(session, message)
	}
	return nil
}

func (r *reader) take(session sarama.ConsumerGroupSession, message *sarama.ConsumerMessage) {
	r.Lock()
	defer r.Unlock()
	show(message)
	session.MarkMessage(message, "")
	r.missing--
	if r.missing == 0 {
		session.Commit()
		r.done()
	}
}

// churner tells what each claim brings. Its commits are requests of its own, because a session does not say whether the
// broker accepted one.
type churner struct {
	client sarama.Client
	group  string
}

func (churner) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (churner) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c churner) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	defer flushLines()
	printLine(map[string]any{
		"assigned": []int32{claim.Partition()},
		"gen":      session.GenerationID(),
		"member":   session.MemberID(),
	})
	flushLines()
	again := time.NewTicker(commitAgainAfter)
	defer again.Stop()
	next, committed := claim.InitialOffset(), claim.InitialOffset()
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				printLine(map[string]any{"revoked": []int32{claim.Partition()}})
				return nil
			}
			next = drain(claim, message)
		case <-again.C:
		}
		if next != committed && c.commit(session, claim, next) {
			committed = next
		}
	}
}

// drain tells a record and those that wait behind it, and returns the offset that follows.
func drain(claim sarama.ConsumerGroupClaim, message *sarama.ConsumerMessage) int64 {
	defer flushLines()
	next := tell(message)
	for range min(len(claim.Messages()), recordsPerCommit) {
		message, open := <-claim.Messages()
		if !open {
			break
		}
		next = tell(message)
	}
	return next
}

// tell prints a record, and returns the offset that follows it.
func tell(message *sarama.ConsumerMessage) int64 {
	printLine(map[string]any{"r": []any{message.Partition, message.Offset, string(message.Value)}})
	return message.Offset + 1
}

// commit tells whether the broker accepted it.
func (c churner) commit(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim, offset int64) bool {
	generation := session.GenerationID()
	line := map[string]any{
		"commit": map[int32]int64{claim.Partition(): offset},
		"gen":    generation,
		"member": session.MemberID(),
	}
	err := c.request(session.MemberID(), generation, claim, offset)
	if err != nil {
		line = map[string]any{"commit_failed": err.Error(), "gen": generation}
	}
	printLine(line)
	flushLines()
	return err == nil
}

func (c churner) request(member string, generation int32, claim sarama.ConsumerGroupClaim, offset int64) error {
	coordinator, err := c.client.Coordinator(c.group)
	if err != nil {
		return err
	}
	request := &sarama.OffsetCommitRequest{
		Version:                 7,
		ConsumerGroup:           c.group,
		ConsumerGroupGeneration: generation,
		ConsumerID:              member,
	}
	request.AddBlock(claim.Topic(), claim.Partition(), offset, 0, "")
	answer, err := coordinator.CommitOffset(request)
	if err != nil {
		return errors.Join(err, c.client.RefreshCoordinator(c.group))
	}
	if refused := answer.Errors[claim.Topic()][claim.Partition()]; !errors.Is(refused, sarama.ErrNoError) {
		return refused
	}
	return nil
}
