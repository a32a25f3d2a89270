import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Two records produced, one after the other, with Kafka's own client and its default settings: what its user sees. */
public class Symptoms {
    public static void main(String[] args) throws Exception {
        long began = System.nanoTime();
        String told = "null";
        Map<String, Object> config = Map.of("bootstrap.servers", System.getenv("TURNSTILE_BOOTSTRAP"), "client.id", "symptoms");
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        Thread end = new Thread(() -> {
            try {
                Thread.sleep(70_000);
            } catch (InterruptedException ignored) {
                return;
            }
            Runtime.getRuntime().halt(0);
        });
        end.setDaemon(true);
        end.start();
        try {
            for (int sent = 0; sent < 2; sent++) {
                producer.send(new ProducerRecord<>("orders", new byte[50_000])).get(10, TimeUnit.SECONDS);
            }
        } catch (Exception fault) {
            told = fault.toString();
        }
        System.out.printf("returned after %.1f s: %s%n", (System.nanoTime() - began) / 1e9, told);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
