package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests of Kafka's own client under limits: {@code mvn test}, with the turnstile command on the PATH. */
@Timeout(60)
class OrdersTest {
    private static Cluster cluster;

    @BeforeAll
    static void start() throws Exception {
        cluster = new Cluster("--topic", "orders:3", "--set", "group.initial.rebalance.delay.ms=0");
    }

    @AfterAll
    static void stop() throws Exception {
        cluster.close();
    }

    @BeforeEach
    void reset() {
        cluster.reset();
    }

    @Test
    void anOrderArrives() throws Exception {
        try (var producer = producer("shop"); var consumer = consumer("warehouse")) {
            producer.send(new ProducerRecord<>("orders", "one")).get();
            consumer.subscribe(List.of("orders"));
            var records = consumer.poll(Duration.ofSeconds(30));
            while (records.isEmpty()) {
                records = consumer.poll(Duration.ofSeconds(30));
            }
            assertEquals("one", records.iterator().next().value());
        }
    }

    /** A refused connection is closed before it is answered a byte. */
    @Test
    void aFourthConnectionIsRefused() throws Exception {
        cluster.set("kafka_connections_max_per_ip", 3);
        List<Socket> sockets = Stream.generate(this::connection).limit(4).toList();
        var ends = sockets.stream().map(each -> CompletableFuture.runAsync(() -> readEnd(each), task -> new Thread(task).start()));
        CompletableFuture.anyOf(ends.toArray(CompletableFuture[]::new)).get();
        assertEquals(1, cluster.refused());
        for (Socket socket : sockets) {
            socket.close();
        }
    }

    @Test
    void aProducerOverItsQuotaIsToldToWait() throws Exception {
        cluster.quota("importer", "producer_byte_rate", 1000);
        try (var importer = producer("importer")) {
            importer.send(new ProducerRecord<>("orders", "x".repeat(50_000))).get();
            double waited = importer.metrics().entrySet().stream()
                    .filter(metric -> metric.getKey().name().equals("produce-throttle-time-max"))
                    .mapToDouble(metric -> (double) metric.getValue().metricValue())
                    .max().orElseThrow();
            assertTrue(waited > 1000, "told to wait " + waited + " ms");
        }
    }

    private static KafkaProducer<String, String> producer(String clientId) {
        Map<String, Object> settings = Map.of("bootstrap.servers", cluster.bootstrap, "client.id", clientId);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String group) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", cluster.bootstrap, "group.id", group, "auto.offset.reset", "earliest");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private Socket connection() {
        String[] address = cluster.bootstrap.split(":");
        try {
            return new Socket(address[0], Integer.parseInt(address[1]));
        } catch (IOException fault) {
            throw new UncheckedIOException(fault);
        }
    }

    private static void readEnd(Socket socket) {
        try {
            socket.getInputStream().read();
        } catch (IOException closed) {
            // reset instead of ended: refused all the same
        }
    }
}
