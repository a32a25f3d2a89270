import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Moves every record of `in` to `out`, in transactions that carry their offsets (KIP-447), as exactly_once.py does: bootstrap, the
 * number of records, the number of partitions. The last line: transactions, those that had to be aborted, producers.
 */
public final class ExactlyOnce {
    private static final Duration STEP = Duration.ofSeconds(20);
    private final String bootstrap;
    private final Set<TopicPartition> places = new HashSet<>();
    private final KafkaConsumer<byte[], byte[]> consumer;
    private KafkaProducer<byte[], byte[]> producer;
    private int transactions;
    private int aborted;
    private int producers;

    private ExactlyOnce(String bootstrap, int partitions) {
        this.bootstrap = bootstrap;
        for (int number = 0; number < partitions; number++) {
            places.add(new TopicPartition("in", number));
        }
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", "g");
        properties.put("auto.offset.reset", "earliest");
        properties.put("isolation.level", "read_committed");
        properties.put("enable.auto.commit", "false");
        properties.put("session.timeout.ms", "6000");
        properties.put("heartbeat.interval.ms", "1000");
        properties.put("max.poll.records", "200");
        consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of("in"));
        producer = newProducer();
    }

    private KafkaProducer<byte[], byte[]> newProducer() {
        producers++;
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("transactional.id", "pipeline");
        properties.put("max.block.ms", String.valueOf(STEP.toMillis()));
        KafkaProducer<byte[], byte[]> made =
            new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        retried(made::initTransactions);
        return made;
    }

    private void run(long records) {
        while (committed() < records) {
            ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(200));
            if (polled.isEmpty()) {
                continue;
            }
            try {
                move(polled);
                transactions++;
            } catch (KafkaException fault) {
                recover();
            }
        }
        System.out.println(transactions + " " + aborted + " " + producers);
    }

    private void move(ConsumerRecords<byte[], byte[]> polled) {
        producer.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> each : polled) {
            byte[] effect = ("effect of " + new String(each.value())).getBytes();
            producer.send(new ProducerRecord<>("out", each.key(), effect));
        }
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (TopicPartition place : consumer.assignment()) {
            next.put(place, new OffsetAndMetadata(consumer.position(place)));
        }
        producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
        retried(producer::commitTransaction);
    }

    /** Aborts, by another producer if this one can't, and goes back to what is committed. */
    private void recover() {
        aborted++;
        try {
            retried(producer::abortTransaction);
        } catch (KafkaException | IllegalStateException fault) {
            producer.close(Duration.ZERO);
            producer = newProducer();
        }
        Map<TopicPartition, OffsetAndMetadata> held = retriedCommitted(consumer.assignment());
        for (TopicPartition place : consumer.assignment()) {
            OffsetAndMetadata committed = held.get(place);
            consumer.seek(place, committed == null ? 0 : committed.offset());
        }
    }

    private long committed() {
        return retriedCommitted(places).values().stream().filter(each -> each != null).mapToLong(OffsetAndMetadata::offset).sum();
    }

    private Map<TopicPartition, OffsetAndMetadata> retriedCommitted(Set<TopicPartition> wanted) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        retried(() -> found.putAll(consumer.committed(wanted, STEP)));
        return found;
    }

    private static void retried(Runnable step) {
        while (true) {
            try {
                step.run();
                return;
            } catch (TimeoutException again) {
                System.err.println(again.getMessage());
            }
        }
    }

    public static void main(String[] args) {
        new ExactlyOnce(args[0], Integer.parseInt(args[2])).run(Long.parseLong(args[1]));
        System.exit(0);
    }
}
