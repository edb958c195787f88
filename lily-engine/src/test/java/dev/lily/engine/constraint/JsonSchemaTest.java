package dev.lily.engine.constraint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.InputStream;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

class JsonSchemaTest {
  private static final List<String> REFUSED = List.of("unresolvable-ref", "remote-ref");

  /** Schemas on which other engines failed: what is valid can be written, nothing else can. */
  @TestFactory
  Stream<DynamicTest> fieldCases() throws Exception {
    JsonNode cases;
    try (InputStream in = JsonSchemaTest.class.getResourceAsStream("/field-cases/schemas.json")) {
      cases = JsonMapper.builder().build().readTree(in).path("cases");
    }
    assertThat(cases).hasSize(14);
    return cases
        .valueStream()
        .map(c -> DynamicTest.dynamicTest(c.path("id").stringValue(), () -> check(c)));
  }

  private static void check(JsonNode fieldCase) {
    var constraint = new OutputConstraint.JsonSchema(fieldCase.path("schema"));
    if (REFUSED.contains(fieldCase.path("id").stringValue())) {
      assertThatThrownBy(() -> Grammar.compile(constraint))
          .isInstanceOfSatisfying(
              InvalidConstraintException.class, e -> assertThat(e.path()).isEqualTo("/$ref"));
      return;
    }
    Grammar grammar = Grammar.compile(constraint);
    for (JsonNode document : fieldCase.path("valid")) {
      assertThat(Texts.accepts(grammar, document.toString())).as(document.toString()).isTrue();
    }
    for (JsonNode document : fieldCase.path("invalid")) {
      assertThat(Texts.accepts(grammar, document.toString())).as(document.toString()).isFalse();
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          true                                          | {"a": [1,2.5e3,null], "b":{}}  | {"a":}
          true                                          | "\\ud83d\\ude00"               | "\\ud83d"
          {'type':'string','maxLength':2}               | "\\ud83d\\ude00é"              | "abc"
          {'type':'string','minLength':1}               | "\\n"                          | ""
          {'type':'string','pattern':'o\\\\d'}          | "foo7bar"                      | "foobar"
          {'type':'string','pattern':'^\\\\u0022$'}     | "\\""                          | "'"
          {'type':'string','format':'date'}             | "2024-02-29"                   | "2023-02-29"
          {'type':'string','format':'date-time'}        | "2024-12-23T23:56:17.5-18:00"  | "2024-12-23T23:56:17.5-18:01"
          {'type':'string','format':'email'}            | "a.b@c.de"                     | "a@b"
          {'type':['string','null']}                    | null                           | 1
          {'type':'array','prefixItems':[{'type':'null'}],'items':{'type':'integer'}} | [null,1, 2] | [1]
          {'type':'array','prefixItems':[{'type':'null'}],'items':false}  | [null]       | [null,null]
          {'type':'array','maxItems':0}                 | []                             | [1]
          {'type':'array','minItems':2}                 | [1,2,3]                        | [1]
          {'type':'object'}                             | {"any": [1]}                   | []
          {'type':'object','additionalProperties':{'type':'null'},'minProperties':1,'maxProperties':2} | {"a":null,"b":null} | {}
          {'properties':{'a':{'type':'null'}},'additionalProperties':{'type':'boolean'}} | {"a":null,"aa":true} | {"a":true}
          {'properties':{'a':true,'b':true},'required':['b'],'maxProperties':1} | {"b":1} | {"a":1,"b":1}
          {'properties':{'a':true,'b':true}}            | {"a":1, "b":2}                 | {"b":2,"a":1}
          {'required':['x'],'additionalProperties':{'type':'null'}} | {"x":null}         | {}
          {'additionalProperties':{'type':'null'},'propertyNames':{'maxLength':3}} | {"äöü":null}  | {"abcd":null}
          {'propertyNames':{'minLength':1}}             | {"a":[{"":1}]}                 | {"":1}
          {'propertyNames':{'pattern':'^[a-z]$'},'type':'object'} | {"b":1}            | {"B":1}
          {'properties':{'a':{'type':'null'}},'additionalProperties':{'type':'boolean'},'propertyNames':{'pattern':'^[ab]+$','maxLength':2}} | {"a":null,"ab":true} | {"aba":true}
          {'properties':{'a':{'type':'null'}},'additionalProperties':{'type':'boolean'},'propertyNames':{'type':'string','maxLength':2}} | {"aa":true} | {"a":true}
          {'type':'integer','format':'int32'}           | 2147483647                     | 2147483648
          {'type':'integer'}                            | 123456789012345678             | 1234567890123456789
          {'type':'number'}                             | -0.5e-10                       | 1e100
          {'type':'number','minimum':0.5,'exclusiveMaximum':1} | 0.99                    | 1.0
          {'type':'number','exclusiveMaximum':0}        | -0.001                         | -0
          {'type':'integer','multipleOf':7}             | -21                            | 22
          {'type':'number','multipleOf':0.25}           | 1.75                           | 1.8
          {'allOf':[{'type':'integer','minimum':3},{'maximum':4}]} | 4                   | 5
          {'$ref':'#/$defs/p','minimum':5,'$defs':{'p':{'type':'integer'}}} | 5          | 4
          {'type':'object','properties':{'a':{'type':'integer'},'b':{'type':'integer'}},'anyOf':[{'required':['a']},{'required':['b']}]} | {"b":1} | {}
          {'oneOf':[{'type':'string'},{'type':'null'}]} | null                           | 1
          {'oneOf':[{'properties':{'k':{'const':1}},'required':['k'],'type':'object'},{'properties':{'k':{'const':2},'x':true},'required':['k'],'type':'object'}]} | {"k":2,"x":0} | {"k":1,"x":0}
          {'enum':[{'a':[1,"ü"]},2]}                    | {"a":[1,"ü"]}                  | {"a":[1]}
          {'type':'string','enum':['a',1]}              | "a"                            | 1
          """)
  void writesWhatIsValidAndNothingElse(String schema, String valid, String invalid) {
    Grammar grammar = Texts.schema(schema);
    assertThat(Texts.accepts(grammar, valid)).as(valid).isTrue();
    assertThat(Texts.accepts(grammar, invalid)).as(invalid).isFalse();
  }

  @Test
  void writesAtMostOneSpaceAndThatBehindColonsAndCommas() {
    Grammar grammar = Texts.schema("{'type':'object'}");
    assertThat(Texts.accepts(grammar, "{\"a\": 1, \"b\": [1, 2]}")).isTrue();
    for (String spaced :
        List.of("{ \"a\":1}", "{\"a\" :1}", "{\"a\":  1}", "{\"a\":1 }", " {}", "{}\n", "{\n}")) {
      assertThat(Texts.accepts(grammar, spaced)).as(spaced).isFalse();
    }
  }

  @Test
  void recursionEndsWhereItCanStillBeClosed() {
    Grammar grammar = Texts.schema("{'type':'array','items':{'$ref':'#'}}");
    Matcher matcher = new Matcher(grammar, Texts.bytes());
    int depth = 0;
    while (matcher.allows('[')) {
      matcher.advance('[');
      depth++;
    }
    assertThat(depth).isBetween(Grammar.MAX_STACK / 2, Grammar.MAX_STACK);
    for (int i = 0; i < depth; i++) {
      matcher.advance(']');
    }
    assertThat(matcher.isFinished()).isTrue();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          {'foo':1}                                                  | /foo
          {'type':'text'}                                            | /type
          {'properties':{'a/b':{'type':'integer','minimum':5,'maximum':4}}} | /properties/a~1b
          {'properties':{'a':{'not':{}}}}                            | /properties/a/not
          {'items':{'uniqueItems':true}}                             | /items/uniqueItems
          {'items':[{}]}                                             | /items
          {'enum':[]}                                                | /enum
          {'type':'string','enum':[1]}                               | /enum
          {'anyOf':[]}                                               | /anyOf
          {'oneOf':[{'type':'integer'},{'type':'number'}]}           | /oneOf
          {'$ref':'other.json'}                                      | /$ref
          {'$ref':'#/$defs/a','$defs':{'a':{'$ref':'#/$defs/a'}}}    | /$ref
          {'type':'string','pattern':'(?=a)'}                        | /pattern
          {'type':'string','pattern':'(a)\\\\1'}                       | /pattern
          {'type':'string','pattern':'^a$','minLength':2}            | /pattern
          {'type':'string','format':'colour'}                        | /format
          {'type':'string','minLength':3,'maxLength':2}              | /minLength
          {'type':'array','minItems':2,'maxItems':1}                 | /minItems
          {'type':'integer','exclusiveMinimum':true}                 | /exclusiveMinimum
          {'type':'number','multipleOf':0.0001234}                   | /multipleOf
          {'type':'object','required':['a'],'additionalProperties':false} | /required
          {'properties':{'a':true},'minProperties':1}                | /minProperties
          {'type':'object','minProperties':2}                        | /minProperties
          {'required':['a','b'],'maxProperties':1}                   | /maxProperties
          {'propertyNames':{'enum':['a']}}                           | /propertyNames/enum
          {'propertyNames':{'anyOf':[{}]}}                           | /propertyNames/anyOf
          {'propertyNames':false}                                    | /propertyNames
          {'propertyNames':{'type':'integer'}}                       | /propertyNames
          {'properties':{'abc':{}},'propertyNames':{'maxLength':2}}  | /propertyNames
          {'required':['abc'],'propertyNames':{'pattern':'^a$'}}     | /propertyNames
          {'propertyNames':{'minLength':2,'maxLength':1}}            | /propertyNames/minLength
          {'properties':{'a':{'patternProperties':{}}}}              | /properties/a/patternProperties
          {'allOf':[{'properties':{'a':{'type':'null'}}},{'properties':{'a':{'type':'string'}}}]} | /allOf/1/properties/a
          """)
  void refusesWhatItCannotEnforceAndSaysWhere(String schema, String path) {
    assertThatThrownBy(() -> Texts.schema(schema))
        .isInstanceOfSatisfying(
            InvalidConstraintException.class, e -> assertThat(e.path()).isEqualTo(path));
  }

  /** Every keyword that the documentation lists as refused, at the root and inside. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "'uniqueItems':true",
        "'contains':{}",
        "'minContains':1",
        "'maxContains':1",
        "'patternProperties':{'a':{}}",
        "'dependentRequired':{'a':['b']}",
        "'dependentSchemas':{'a':{}}",
        "'dependencies':{'a':['b']}",
        "'unevaluatedItems':false",
        "'unevaluatedProperties':false",
        "'additionalItems':false",
        "'not':{}",
        "'if':{}",
        "'then':{}",
        "'else':{}",
        "'$anchor':'a'",
        "'$dynamicRef':'#a'",
        "'$dynamicAnchor':'a'",
        "'$recursiveRef':'#'",
        "'nullable':true",
        "'maxlength':3"
      })
  void refusesEveryKeywordThatItCannotEnforceAndSaysWhere(String keyword) {
    String name = keyword.substring(1, keyword.indexOf("':"));
    assertRefused("{" + keyword + "}", "/" + name);
    assertRefused(
        "{'properties':{'x':{'type':'string'},'y':{'items':{" + keyword + "}}}}",
        "/properties/y/items/" + name);
    assertRefused(
        "{'anyOf':[{'type':'null'},{'$ref':'#/$defs/d'}],'$defs':{'d':{" + keyword + "}}}",
        "/$defs/d/" + name);
  }

  private static void assertRefused(String schema, String path) {
    assertThatThrownBy(() -> Texts.schema(schema))
        .isInstanceOfSatisfying(
            InvalidConstraintException.class, e -> assertThat(e.path()).isEqualTo(path));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          {'type':'object','properties':{'a':{'$ref':'#'}},'required':['a']}                  | ''
          {'type':'array','items':{'$ref':'#'},'minItems':1}                                  | ''
          {'type':'object','properties':{'a':false},'required':['a']}                         | /properties/a
          {'$ref':'#/$defs/a','$defs':{'a':{'anyOf':[{'$ref':'#/$defs/a'},{'type':'null'}]}}} | /$defs/a
          {'$ref':'#/$defs/a','$defs':{'a':{'anyOf':[{'$ref':'#/$defs/b'}]},'b':{'anyOf':[{'$ref':'#/$defs/a'}]}}} | /$defs/b
          false                                                                               | ''
          """)
  void refusesWhatCanNeverBeComplete(String schema, String path) {
    assertThatThrownBy(() -> Texts.schema(schema))
        .isInstanceOfSatisfying(
            InvalidConstraintException.class, e -> assertThat(e.path()).isEqualTo(path));
  }
}
