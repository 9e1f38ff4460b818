import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** The records of a seed. */
final class Records {
    private static final long FIRST_TIMESTAMP = 1_700_000_000_000L;
    private static final int BIG_BYTES = 900_000;

    private Records() {}

    /** Record i of a seed, the same in every client's language. */
    static ProducerRecord<byte[], byte[]> record(String topic, String seed, int i, int partitions) {
        byte[] key = i % 7 == 3 ? null : bytes("k-" + seed + "-" + i);
        byte[] value =
                key != null && i % 11 == 5 ? null : bytes("v-" + seed + "-" + i + "-" + "x".repeat(i * 37 % 300));
        List<Header> headers =
                switch (i % 3) {
                    case 1 -> List.of(new RecordHeader("h1", bytes("a")), new RecordHeader("h1", bytes("b")));
                    case 2 -> List.of(
                            new RecordHeader("empty", new byte[0]),
                            new RecordHeader("bin", new byte[] {0, (byte) 0xff, (byte) 0x80}));
                    default -> List.of();
                };
        return new ProducerRecord<>(
                topic, i % partitions, FIRST_TIMESTAMP + i, key, value, headers);
    }

    /** The record that nearly fills a request. */
    static ProducerRecord<byte[], byte[]> big(String topic, int i, int partitions) {
        return new ProducerRecord<>(
                topic, i % partitions, FIRST_TIMESTAMP + i, bytes("big"), bytes("y".repeat(BIG_BYTES)));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
