import java.io.BufferedWriter;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Runs one scenario of the client matrix with Apache Kafka's own client: {@code Program BOOTSTRAP SCENARIO key=value...}
 *
 * <p>It prints JSON lines; an exit code other than 0 says that the scenario failed.
 */
public final class Program {
    private static final Duration POLL = Duration.ofMillis(200);

    private final String bootstrap;
    private final Map<String, String> arguments = new HashMap<>();
    /** What a churning member has read of its partitions and not committed. */
    private final Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
    private final PrintWriter output =
            new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8)));

    private Program(String[] words) {
        bootstrap = words[0];
        for (int at = 2; at < words.length; at++) {
            String[] parts = words[at].split("=", 2);
            arguments.put(parts[0], parts[1]);
        }
    }

    public static void main(String[] words) {
        if (words.length < 2) {
            System.err.println("usage: Program BOOTSTRAP produce|read|group|churn key=value...");
            System.exit(2);
        }
        Program program = new Program(words);
        int code = 0;
        try {
            switch (words[1]) {
                case "produce" -> program.produce();
                case "read" -> program.read();
                case "group" -> program.group();
                case "churn" -> program.churn();
                default -> throw new IllegalArgumentException("`" + words[1] + "` is not a scenario");
            }
        } catch (Exception failure) {
            failure.printStackTrace();
            code = 1;
        }
        program.output.flush();
        System.exit(code);
    }

    private String text(String name, String otherwise) {
        return arguments.getOrDefault(name, otherwise);
    }

    private int number(String name, int otherwise) {
        return Integer.parseInt(text(name, Integer.toString(otherwise)));
    }

    /** Writes the seed's records and waits for every acknowledgement. */
    private void produce() throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("acks", "all");
        settings.put("compression.type", text("codec", "none"));
        settings.put("linger.ms", "20");
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        String topic = text("topic", "");
        int partitions = number("partitions", 1);
        int count = number("count", 0);
        int total = count + number("big", 0);
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            for (int i = 0; i < total; i++) {
                sent.add(producer.send(
                        i < count
                                ? Records.record(topic, text("seed", "0"), i, partitions)
                                : Records.big(topic, i, partitions)));
            }
            producer.flush();
            for (Future<RecordMetadata> acknowledgement : sent) {
                acknowledgement.get(60, TimeUnit.SECONDS);
            }
        }
        output.println("{\"produced\": " + total + "}");
    }

    /** Reads every partition from its beginning, without a group. */
    private void read() {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consumerSettings())) {
            List<TopicPartition> partitions = IntStream.range(0, number("partitions", 1))
                    .mapToObj(partition -> new TopicPartition(text("topic", ""), partition))
                    .toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            readExpected(consumer);
        }
    }

    private void readExpected(KafkaConsumer<byte[], byte[]> consumer) {
        int expected = number("expect", 0);
        int seen = 0;
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(number("timeout", 60));
        while (seen < expected) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                output.println(Lines.whole(record));
                seen++;
            }
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("only " + seen + " of " + expected + " records came");
            }
        }
    }

    /** Reads as the only member of a group, commits, leaves, and asks the broker what is committed. */
    private void group() {
        Properties settings = consumerSettings();
        settings.put("group.id", text("group", ""));
        Collection<TopicPartition> assigned;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(text("topic", "")));
            readExpected(consumer);
            consumer.commitSync();
            assigned = List.copyOf(consumer.assignment());
        }
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(Set.copyOf(assigned));
            committed.values().removeIf(Objects::isNull);
            output.println("{\"committed\": " + Lines.offsets(committed) + "}");
        }
    }

    /** A member of a group whose others come and go: tells what it is given, reads and commits. */
    private void churn() {
        boolean cooperative = text("strategy", "range").equals("cooperative");
        Properties settings = consumerSettings();
        settings.put("client.id", text("id", "java"));
        settings.put("group.id", text("group", ""));
        settings.put("session.timeout.ms", String.valueOf(number("session_ms", 6000)));
        settings.put("heartbeat.interval.ms", "500");
        settings.put("max.poll.interval.ms", "10000");
        if (arguments.containsKey("instance")) {
            settings.put("group.instance.id", arguments.get("instance"));
        }
        settings.put(
                "partition.assignment.strategy",
                "org.apache.kafka.clients.consumer." + (cooperative ? "CooperativeStickyAssignor" : "RangeAssignor"));
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        CountDownLatch left = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(consumer, left)));
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(number("seconds", 20));
        try (consumer) {
            consumer.subscribe(List.of(text("topic", "")), new Listener(consumer));
            while (System.nanoTime() < deadline) {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(POLL);
                polled.forEach(record -> output.println(Lines.brief(record)));
                output.flush();
                for (ConsumerRecord<byte[], byte[]> record : polled) {
                    ends.put(
                            new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                }
                if (!ends.isEmpty()) {
                    commit(consumer);
                }
            }
        } catch (WakeupException end) {
            // A SIGTERM: closing the consumer leaves the group.
        } finally {
            output.flush();
            left.countDown();
        }
    }

    /** Runs as the hook of a SIGTERM: wakes the member, and ends once it has left. */
    private static void stop(KafkaConsumer<byte[], byte[]> consumer, CountDownLatch left) {
        if (left.getCount() == 0) {
            return;
        }
        consumer.wakeup();
        boolean orderly = false;
        try {
            orderly = left.await(10, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(orderly ? 0 : 1);
    }

    /** Commits and tells what the broker accepted; what it refuses stays in {@code ends} for the next time. */
    private void commit(KafkaConsumer<byte[], byte[]> consumer) {
        int generation = consumer.groupMetadata().generationId();
        try {
            consumer.commitSync(ends);
            output.println("{\"commit\": " + Lines.offsets(ends) + ", \"gen\": " + generation + "}");
            ends.clear();
        } catch (WakeupException end) {
            throw end;
        } catch (KafkaException refused) {
            output.println("{\"commit_failed\": " + Lines.quoted(refused.toString()) + ", \"gen\": " + generation + "}");
        }
        output.flush();
    }

    /** Tells what each rebalance gives and takes. */
    private final class Listener implements ConsumerRebalanceListener {
        private final KafkaConsumer<byte[], byte[]> consumer;

        private Listener(KafkaConsumer<byte[], byte[]> consumer) {
            this.consumer = consumer;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            output.println("{\"assigned\": " + Lines.indexes(partitions)
                    + ", \"gen\": " + consumer.groupMetadata().generationId()
                    + ", \"member\": " + Lines.quoted(consumer.groupMetadata().memberId()) + "}");
            output.flush();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            ends.keySet().removeAll(partitions);
            output.println("{\"revoked\": " + Lines.indexes(partitions) + "}");
            output.flush();
        }
    }

    private Properties consumerSettings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        return settings;
    }
}
