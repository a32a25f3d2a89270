package turnstile;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class TurnstileTest {
    private static Turnstile turnstile;

    @BeforeAll
    static void start() throws Exception {
        turnstile = Turnstile.start("--topic", "orders:1");
        System.out.println("Turnstile runs as " + turnstile.run);
    }

    @AfterAll
    static void stop() throws Exception {
        turnstile.close();
    }

    @BeforeEach
    void reset() {
        turnstile.reset();
    }

    @Test
    void aCapRefusesAndSaysWhy() throws Exception {
        turnstile.set("kafka_connections_max_per_ip", 3);
        List<Socket> held = connections(4);
        assertEquals(Map.of("ip_cap", 1L), refused());
        for (Socket each : held) {
            each.close();
        }
    }

    @Test
    void aQuotaThrottlesAlwaysAlike() throws Exception {
        List<Double> told = new ArrayList<>();
        for (int n = 0; n < 2; n++) {
            turnstile.reset();
            turnstile.quota("importer", "producer_byte_rate", 1000);
            Map<String, Object> settings = Map.of("bootstrap.servers", turnstile.bootstrap(), "client.id", "importer");
            try (var importer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                importer.send(new ProducerRecord<>("orders", "x".repeat(20_000))).get();
                told.add(importer.metrics().entrySet().stream()
                        .filter(metric -> metric.getKey().name().equals("produce-throttle-time-max"))
                        .mapToDouble(metric -> (double) metric.getValue().metricValue())
                        .max().orElseThrow());
            }
        }
        assertTrue(told.get(0) > 0);
        assertEquals(told.get(0), told.get(1));
    }

    @Test
    void aResetForgetsWhatATestHasDone() throws Exception {
        turnstile.set("kafka_connections_max_per_ip", 1);
        List<Socket> held = connections(3);
        refused();
        turnstile.reset();
        assertEquals(Map.of(), turnstile.refusals());
        for (Socket each : held) {
            assertTrue(isAtItsEnd(each), "a reset closes every connection");
            each.close();
        }
    }

    private static List<Socket> connections(int count) throws IOException {
        String[] address = turnstile.bootstrap().split(":");
        List<Socket> held = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            held.add(new Socket(address[0], Integer.parseInt(address[1])));
        }
        return held;
    }

    private static boolean isAtItsEnd(Socket socket) {
        try {
            return socket.getInputStream().read() < 0;
        } catch (IOException reset) {
            return true;
        }
    }

    /** Once there are any: a connection is refused a moment after it was opened. */
    private static Map<String, Long> refused() throws InterruptedException {
        Map<String, Long> found = turnstile.refusals();
        for (int n = 0; found.isEmpty() && n < 1000; n++) {
            Thread.sleep(10);
            found = turnstile.refusals();
        }
        return found;
    }
}
