package dev.lily.engine.chat;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.JsonNodeFactory;
import tools.jackson.databind.node.ObjectNode;

/** Schemas are written with single quotes for double ones. */
class ArgumentTyperTest {

  private static JsonNode type(String schema, String text) {
    ObjectNode parameters = JsonNodeFactory.instance.objectNode();
    parameters.putObject("properties").set("v", TestTools.object(schema));
    return new ArgumentTyper(parameters).type("v", text);
  }

  private static JsonNode typeNamed(String type, String text) {
    return type("{'type':'" + type + "'}", text);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "string  | 01234           | \"01234\"",
        "string  | 42              | \"42\"",
        "string  | true            | \"true\"",
        "string  | null            | \"null\"",
        "string  | None            | \"None\"",
        "string  | [1]             | \"[1]\"",
        "str     | 1               | \"1\"",
        "text    | 1               | \"1\"",
        "varchar | 1               | \"1\"",
        "char    | 1               | \"1\"",
        "enum    | 1               | \"1\"",
        "integer | 3               | 3",
        "integer | -3              | -3",
        "integer | +3              | 3",
        "integer | 007             | 7",
        "integer | 3.0             | 3",
        "integer | 1e3             | 1000",
        "integer | 3.5             | \"3.5\"",
        "integer | three           | \"three\"",
        "integer | 0x10            | \"0x10\"",
        "integer | true            | \"true\"",
        "integer | 2147483648      | 2147483648",
        "integer | 9223372036854775808 | 9223372036854775808",
        "integer | 12345678901234567890123 | 12345678901234567890123",
        "integer | null            | null",
        "integer | None            | null",
        "int32   | 3               | 3",
        "uint8   | 3               | 3",
        "long    | 3               | 3",
        "short   | 3               | 3",
        "unsigned| 3               | 3",
        "number  | -0.5            | -0.5",
        "number  | .5              | 0.5",
        "number  | 3               | 3",
        "number  | 3.0             | 3",
        "number  | 1e3             | 1000",
        "number  | 1e300           | 1.0E300",
        "number  | 0.1             | 0.1",
        "number  | 3.14159265358979323846 | 3.14159265358979323846",
        "number  | NaN             | \"NaN\"",
        "number  | Infinity        | \"Infinity\"",
        "number  | 1,5             | \"1,5\"",
        "number  | null            | null",
        "float   | 1.5             | 1.5",
        "double  | 1.5             | 1.5",
        "numeric | 1.5             | 1.5",
        "boolean | true            | true",
        "boolean | True            | true",
        "boolean | FALSE           | false",
        "boolean | False           | false",
        "boolean | yes             | \"yes\"",
        "boolean | 1               | \"1\"",
        "boolean | null            | null",
        "bool    | True            | true",
        "binary  | false           | false",
        "object  | {\"a\": [1, null]} | {\"a\":[1,null]}",
        "object  | {'a': True, \"b\": None,} | {\"a\":true,\"b\":null}",
        "object  | \"{\\\"a\\\": 1}\" | {\"a\":1}",
        "object  | '{\"a\": 1}'    | {\"a\":1}",
        "object  | \"{'a': 1}\"    | {\"a\":1}",
        "object  | [1]             | \"[1]\"",
        "object  | {a: 1}          | \"{a: 1}\"",
        "object  | null            | null",
        "dict    | {}              | {}",
        "dict[str, int] | {\"a\":1} | {\"a\":1}",
        "array   | [\"x\", \"y\"]  | [\"x\",\"y\"]",
        "array   | ['x', (1, 2)]   | [\"x\",[1,2]]",
        "array   | [1, 2           | \"[1, 2\"",
        "array   | {}              | \"{}\"",
        "array   | x               | \"x\"",
        "arr     | [1]             | [1]",
        "list[int] | [1]           | [1]",
        "null    | null            | null",
        "null    | x               | \"x\"",
        "any     | 1               | 1",
        "any     | {'a': 1}        | {\"a\":1}",
        "any     | hello           | \"hello\"",
        "any     | null            | null",
        "INTEGER | 3               | 3",
      })
  void convertsToTheDeclaredType(String type, String text, String expected) {
    assertThat(typeNamed(type, text)).hasToString(expected);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{'anyOf':[{'type':'string'},{'type':'null'}]}  | null | null",
        "{'anyOf':[{'type':'string'},{'type':'null'}]}  | 7    | \"7\"",
        "{'anyOf':[{'type':'null'},{'type':'string'}]}  | x    | \"x\"",
        "{'anyOf':[{'type':'integer'},{'type':'null'}]} | 7    | 7",
        "{'anyOf':[{'type':'integer'},{'type':'null'}]} | x    | \"x\"",
        "{'anyOf':[{'type':'integer'},{'type':'boolean'}]} | true | true",
        "{'anyOf':[{'type':'integer'},{'type':'string'}]} | 7  | 7",
        "{'anyOf':[{'type':'integer'},{'type':'string'}]} | 007 | \"007\"",
        "{'anyOf':[{'type':'integer'},{'type':'string'}]} | null | \"null\"",
        "{'anyOf':[{'type':'string'},{'type':'integer'}]} | 7  | \"7\"",
        "{'oneOf':[{'type':'array'},{'type':'object'}]} | {}   | {}",
        "{'oneOf':[{'type':'array'},{'type':'object'}]} | [1]  | [1]",
        "{'allOf':[{'type':'number'}]}                  | 1.5  | 1.5",
        "{'type':['integer','null']}                    | null | null",
        "{'type':['integer','null']}                    | 5    | 5",
        "{'type':['null','string']}                     | null | null",
        "{'type':['string','integer']}                  | 5    | \"5\"",
        "{'type':['array','string']}                    | [1]  | [1]",
        "{'type':['array','string']}                    | a, b | \"a, b\"",
        "{'enum':['1','2']}                             | 2    | \"2\"",
        "{'enum':[1,2]}                                 | 2    | 2",
        "{'enum':['a',null]}                            | null | null",
        "{'const':true}                                 | True | true",
        "{'properties':{'a':{}}}                        | {\"a\":1} | {\"a\":1}",
        "{'items':{}}                                   | [1]  | [1]",
        "{}                                             | 5    | \"5\"",
        "{}                                             | null | \"null\"",
        "{'description':'x'}                            | {}   | \"{}\"",
        "{'$ref':'https://example.org/x'}               | [1]  | [1]",
        "{'$ref':'#/missing'}                           | x    | \"x\"",
      })
  void searchesTheAlternativesInOrder(String schema, String text, String expected) {
    assertThat(type(schema, text)).hasToString(expected);
  }

  @Test
  void followsReferencesWithinTheSchema() {
    ObjectNode parameters =
        TestTools.object(
            """
            {'properties':{
               'color':{'$ref':'#/$defs/color'},
               'count':{'anyOf':[{'$ref':'#/$defs/a~1b%25'},{'type':'null'}]},
               'loop':{'$ref':'#/$defs/loop'}},
             '$defs':{
               'color':{'enum':['1','2']},
               'a/b%':{'type':'integer'},
               'loop':{'anyOf':[{'$ref':'#/$defs/loop'},{'$ref':'#/$defs/loop'}]}}}""");
    ArgumentTyper typer = new ArgumentTyper(parameters);

    assertThat(typer.type("color", "1")).hasToString("\"1\"");
    assertThat(typer.type("count", "1")).hasToString("1");
    assertThat(typer.type("loop", "[1]")).hasToString("[1]");
    assertThat(typer.type("loop", "x")).hasToString("\"x\"");
  }

  @Test
  void keepsAStringsWhitespaceAndTrimsTheRest() {
    assertThat(typeNamed("string", " a \n").stringValue()).isEqualTo(" a \n");
    assertThat(typeNamed("integer", " 3 \n").intValue()).isEqualTo(3);
    assertThat(typeNamed("boolean", "\ttrue ").booleanValue()).isTrue();
    assertThat(typeNamed("integer", " x ").stringValue()).isEqualTo(" x ");
  }

  @Test
  void keepsTheTextOfAParameterThatIsNotDeclared() {
    assertThat(new ArgumentTyper(TestTools.object("{}")).type("v", "7")).hasToString("\"7\"");
  }

  @Test
  void usesTheSmallestNodeThatHoldsANumber() {
    assertThat(typeNamed("integer", "3")).isEqualTo(JsonNodeFactory.instance.numberNode(3));
    assertThat(typeNamed("integer", "3000000000"))
        .isEqualTo(JsonNodeFactory.instance.numberNode(3_000_000_000L));
    assertThat(typeNamed("number", "0.25")).isEqualTo(JsonNodeFactory.instance.numberNode(0.25));
  }

  @Test
  void leavesWhatIsTooLongOrTooDeepAsText() {
    String digits = "9".repeat(100_000);
    String brackets = "[".repeat(100_000) + "]".repeat(100_000);
    String tuples = "(".repeat(100_000) + ")".repeat(100_000);
    String objects = "{'a':".repeat(100_000) + "1" + "}".repeat(100_000);

    assertThat(typeNamed("integer", digits).stringValue()).isEqualTo(digits);
    assertThat(typeNamed("number", "1e999999999").stringValue()).isEqualTo("1e999999999");
    assertThat(typeNamed("integer", "1e9999").stringValue()).isEqualTo("1e9999");
    assertThat(typeNamed("array", brackets).stringValue()).isEqualTo(brackets);
    assertThat(typeNamed("array", tuples).stringValue()).isEqualTo(tuples);
    assertThat(typeNamed("object", objects).stringValue()).isEqualTo(objects);
  }

  @Test
  void tellsWhetherWhatIsRequiredIsThere() {
    ArgumentTyper typer = new ArgumentTyper(TestTools.object("{'required':['a','b']}"));

    assertThat(typer.hasRequired(TestTools.object("{'a':1,'b':null}"))).isTrue();
    assertThat(typer.hasRequired(TestTools.object("{'a':1}"))).isFalse();
    assertThat(new ArgumentTyper(TestTools.object("{}")).hasRequired(TestTools.object("{}")))
        .isTrue();
  }
}
