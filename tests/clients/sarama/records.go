// What the records of a test are, and how one that was read is printed.

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// firstTimestamp is the time of record 0 in milliseconds; each later record is one younger.
const firstTimestamp = 1_700_000_000_000

// bytesShownMax is the length up to which a value is printed; of a longer one the hash is.
const bytesShownMax = 256

// record makes record i of a seed, the same in every client's language.
func record(topic, seed string, i, partitions int) *sarama.ProducerMessage {
	r := &sarama.ProducerMessage{
		Topic:     topic,
		Partition: int32(i % partitions),
		Timestamp: time.UnixMilli(firstTimestamp + int64(i)),
	}
	if i%7 != 3 {
		r.Key = sarama.StringEncoder(fmt.Sprintf("k-%s-%d", seed, i))
	}
	if r.Key == nil || i%11 != 5 {
		r.Value = sarama.StringEncoder(fmt.Sprintf("v-%s-%d-%s", seed, i, strings.Repeat("x", i*37%300)))
	}
	switch i % 3 {
	case 1:
		r.Headers = []sarama.RecordHeader{
			{Key: []byte("h1"), Value: []byte("a")},
			{Key: []byte("h1"), Value: []byte("b")},
		}
	case 2:
		r.Headers = []sarama.RecordHeader{
			{Key: []byte("empty"), Value: []byte{}},
			{Key: []byte("bin"), Value: []byte{0x00, 0xff, 0x80}},
		}
	}
	return r
}

// bigRecord is the one that nearly fills a request; it follows the count others.
func bigRecord(topic string, count, partitions int) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{
		Topic:     topic,
		Partition: int32(count % partitions),
		Timestamp: time.UnixMilli(firstTimestamp + int64(count)),
		Key:       sarama.StringEncoder("big"),
		Value:     sarama.StringEncoder(strings.Repeat("y", 900_000)),
	}
}

// show prints one record that was read.
func show(r *sarama.ConsumerMessage) {
	headers := [][2]*string{}
	for _, header := range r.Headers {
		name := string(header.Key)
		headers = append(headers, [2]*string{&name, hexOrNull(header.Value)})
	}
	line := map[string]any{
		"p": r.Partition,
		"o": r.Offset,
		"t": r.Timestamp.UnixMilli(),
		"k": hexOrNull(r.Key),
		"h": headers,
	}
	if len(r.Value) > bytesShownMax {
		line["vs"] = fmt.Sprintf("%x", sha256.Sum256(r.Value))
	} else {
		line["v"] = hexOrNull(r.Value)
	}
	printLine(line)
}

func hexOrNull(raw []byte) *string {
	if raw == nil {
		return nil
	}
	text := hex.EncodeToString(raw)
	return &text
}
