// Prints every broker, topic and group config of the Kafka on the class path, one a line, fields separated by tabs:
// "broker", "topic" or "group", name, type, default ("\N": none), validator, "dynamic" or "static", documentation in one line.
// For scripts/make_kafka_configs.py.

import java.util.Map;
import java.util.TreeMap;

import org.apache.kafka.common.config.ConfigDef;

public class Configs {
    public static void main(String[] args) {
        print("broker", kafka.server.KafkaConfig.configDef());
        print("topic", org.apache.kafka.storage.internals.log.LogConfig.configDefCopy());
        print("group", org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF);
    }

    private static void print(String kind, ConfigDef definitions) {
        var dynamic = org.apache.kafka.server.config.DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS;
        for (Map.Entry<String, ConfigDef.ConfigKey> entry : new TreeMap<>(definitions.configKeys()).entrySet()) {
            ConfigDef.ConfigKey key = entry.getValue();
            if (key.internalConfig) {
                continue;
            }
            String value = key.hasDefault() && key.defaultValue != null
                    ? ConfigDef.convertToString(key.defaultValue, key.type) : "\\N";
            boolean changes = !kind.equals("broker") || dynamic.contains(key.name);
            System.out.println(String.join("\t", kind, key.name, key.type.name(), text(value),
                    key.validator == null ? "" : text(key.validator.toString()), changes ? "dynamic" : "static",
                    text(key.documentation)));
        }
    }

    private static String text(String lines) {
        return lines == null ? "" : lines.replaceAll("<[^>]*>", "").replaceAll("\\s+", " ").trim();
    }
}
