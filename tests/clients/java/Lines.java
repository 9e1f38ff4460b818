import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;

/** The JSON lines in which a scenario tells what it saw. */
final class Lines {
    private static final int SHOWN_BYTES_MAX = 256;

    private Lines() {}

    /** A record; of a long value the hash. */
    static String whole(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add("[" + quoted(header.key()) + ", " + hex(header.value()) + "]");
        }
        byte[] value = record.value();
        boolean hashed = value != null && value.length > SHOWN_BYTES_MAX;
        return "{\"p\": " + record.partition()
                + ", \"o\": " + record.offset()
                + ", \"t\": " + record.timestamp()
                + ", \"k\": " + hex(record.key())
                + (hashed ? ", \"vs\": " + hex(sha256(value)) : ", \"v\": " + hex(value))
                + ", \"h\": [" + String.join(", ", headers) + "]}";
    }

    /** A record by its place and its value. */
    static String brief(ConsumerRecord<byte[], byte[]> record) {
        String value = record.value() == null ? "null" : quoted(new String(record.value(), StandardCharsets.UTF_8));
        return "{\"r\": [" + record.partition() + ", " + record.offset() + ", " + value + "]}";
    }

    static String indexes(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::partition).sorted().toList().toString();
    }

    static String offsets(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<Integer, Long> byPartition = new TreeMap<>();
        offsets.forEach((partition, offset) -> byPartition.put(partition.partition(), offset.offset()));
        return byPartition.entrySet().stream()
                .map(entry -> "\"" + entry.getKey() + "\": " + entry.getValue())
                .collect(Collectors.joining(", ", "{", "}"));
    }

    static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ") + "\"";
    }

    private static String hex(byte[] bytes) {
        return bytes == null ? "null" : quoted(HexFormat.of().formatHex(bytes));
    }

    private static byte[] sha256(byte[] bytes) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(bytes);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
