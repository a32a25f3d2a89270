import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;

/**
 * One of Kafka's own clients, with its default settings: `producer` of numbered records, `consumer` in a group,
 * `consumer-protocol` in one of KIP-848, `share-consumer` in one of KIP-932, `admin` that creates topics.
 */
public class Client {
    static volatile boolean running = true;
    static volatile Runnable ending = () -> {};

    public static void main(String[] args) throws Exception {
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            running = false;
            ending.run();
            try {
                main.join(30_000);
            } catch (InterruptedException ended) {
                return;
            }
        }));
        Properties where = new Properties();
        where.put("bootstrap.servers", System.getenv("TURNSTILE_BOOTSTRAP"));
        where.put("client.id", args[0]);
        long pid = ProcessHandle.current().pid();
        if (args[0].equals("producer")) {
            produce(where, pid);
        } else if (args[0].equals("consumer")) {
            consume(where);
        } else if (args[0].equals("consumer-protocol")) {
            where.put("group.protocol", "consumer");
            consume(where);
        } else if (args[0].equals("share-consumer")) {
            share(where);
        } else {
            create(where, pid);
        }
    }

    static void produce(Properties where, long pid) throws Exception {
        where.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        where.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaProducer<String, String> producer = new KafkaProducer<>(where);
        // From another thread: a send() that waits for metadata, for max.block.ms, ends only with that.
        ending = () -> producer.close(Duration.ofSeconds(3));
        try {
            for (long number = 1; running; number++) {
                producer.send(new ProducerRecord<>("orders", pid + ":" + number));
                Thread.sleep(20);
            }
        } catch (KafkaException | IllegalStateException closed) {
            if (running) {
                throw closed;
            }
        }
    }

    static void read(Properties where, String group) {
        where.put("group.id", group);
        where.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        where.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
    }

    static void share(Properties where) throws Exception {
        read(where, "sharers");
        again(() -> {
            try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(where)) {
                consumer.subscribe(List.of("orders"));
                while (running) {
                    consumer.poll(Duration.ofMillis(100));
                }
            }
        });
    }

    static void consume(Properties where) throws Exception {
        read(where, "readers");
        again(() -> {
            try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(where)) {
                consumer.subscribe(List.of("orders"));
                while (running) {
                    consumer.poll(Duration.ofMillis(100));
                }
            }
        });
    }

    /** Runs a consumer, and a second after an error that it can't go on from another one, as who runs it would. */
    static void again(Runnable consumer) throws Exception {
        while (running) {
            try {
                consumer.run();
            } catch (KafkaException ended) {
                Thread.sleep(1000);
            }
        }
    }

    static void create(Properties where, long pid) throws Exception {
        try (Admin admin = Admin.create(where)) {
            for (long number = 1; running; number++) {
                admin.createTopics(List.of(new NewTopic("made-" + pid + "-" + number, 1, (short) 1)));
                Thread.sleep(200);
            }
            admin.close(Duration.ofSeconds(3));
        }
    }
}
