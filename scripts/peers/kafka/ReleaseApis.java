import java.lang.reflect.Method;
import java.util.TreeMap;

/** Prints, of the Kafka on the class path, a line for each API that its broker lists: name of the API, key, oldest and newest version. */
public class ReleaseApis {
    public static void main(String[] args) throws Exception {
        Class<?> keys = Class.forName("org.apache.kafka.common.protocol.ApiKeys");
        Class<?> listeners = Class.forName("org.apache.kafka.common.message.ApiMessageType$ListenerType");
        Object listener = listeners.getMethod("valueOf", String.class).invoke(null, args[0]);
        TreeMap<Integer, String> rows = new TreeMap<>();
        for (Object key : (Iterable<?>) keys.getMethod("apisForListener", listeners).invoke(null, listener)) {
            int id = ((Number) keys.getField("id").get(key)).intValue();
            int oldest = ((Number) keys.getMethod("oldestVersion").invoke(key)).intValue();
            rows.put(id, keys.getField("name").get(key) + "\t" + id + "\t" + oldest + "\t" + newest(keys, key));
        }
        rows.values().forEach(System.out::println);
    }

    private static int newest(Class<?> keys, Object key) throws Exception {
        for (Method method : keys.getMethods()) {
            if (method.getName().equals("latestVersion") && method.getParameterCount() == 1) {
                return ((Number) method.invoke(key, false)).intValue();
            }
        }
        return ((Number) keys.getMethod("latestVersion").invoke(key)).intValue();
    }
}
