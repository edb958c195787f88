package dev.lily.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DocumentationTest {

  private static final Path ROOT = Path.of("").toAbsolutePath().getParent();

  @Test
  void relativeLinksLeadSomewhere() {
    Documentation documentation = new Documentation(ROOT);
    assertThat(documentation.pages()).contains(ROOT.resolve("README.md"));
    assertThat(documentation.brokenLinks()).isEmpty();
  }

  @Test
  void snippetsEqualTheirSource() {
    assertThat(new Documentation(ROOT).staleSnippets()).isEmpty();
  }

  @Test
  void javaIsCompiled() {
    assertThat(new Documentation(ROOT).javaWithoutSource()).isEmpty();
  }

  @Test
  void reportsLinksToMissingFilesAndHeadings(@TempDir Path root) throws IOException {
    write(
        root.resolve("README.md"),
        """
        # Read me
        [a](docs/page.md), [b](docs/gone.md "title"), ![c](gone.png), [d](#read-me), [e](#no)
        [f](docs/page.md#two-words--or-three), [g](docs/page.md#two), [h](docs/page.md#code-1)
        <img src="docs/gone.svg"> [i](https://example.org/gone) [j](../gone.md) `[k](gone)`
        [l]: docs/gone.txt
        ```
        [m](gone)
        ```
        """);
    write(
        root.resolve("docs/page.md"),
        """
        ## Two words & *or* three
        ## `code`
        ## Code
        ```
        ## two
        ```
        """);
    assertThat(new Documentation(root).brokenLinks())
        .containsExactly(
            "README.md:2: docs/gone.md does not exist",
            "README.md:2: gone.png does not exist",
            "README.md:2: #no: no such heading",
            "README.md:3: docs/page.md#two: no such heading",
            "README.md:4: docs/gone.svg does not exist",
            "README.md:4: ../gone.md leads out of the repository",
            "README.md:5: docs/gone.txt does not exist");
  }

  @Test
  void reportsSnippetsThatDifferFromTheirSource(@TempDir Path root) throws IOException {
    write(
        root.resolve("A.java"),
        """
        class A {
          // tag::whole[]
          // tag::one[]
          int one() {
            return 1;
          }

          // end::one[]
          int two;
          // end::whole[]
        }
        """);
    write(root.resolve("README.md"), "# Read me\n");
    write(
        root.resolve("docs/page.md"),
        """
        <!-- snippet: A.java#one -->
        ```java
        int one() {
          return 1;
        }
        ```
        <!-- snippet: A.java#one -->
        ```java
        int one() {
          return 2;
        }
        ```
        <!-- snippet: A.java#three -->
        ```java
        ```
        <!-- snippet: B.java#one -->
        <!-- snippet: A.java#one -->
        no block
        <!-- snippet: A.java#whole -->
        ```java
        int one() {
          return 1;
        }

        int two;
        ```
        """);
    assertThat(new Documentation(root).staleSnippets())
        .containsExactly(
            """
            docs/page.md:7: differs from A.java#one, which says:
            int one() {
              return 1;
            }""",
            "docs/page.md:13: A.java has no region between tag::three[] and end::three[]",
            "docs/page.md:16: B.java does not exist",
            "docs/page.md:17: a fenced block has to follow the snippet's comment");
  }

  @Test
  void reportsJavaWithoutSource(@TempDir Path root) throws IOException {
    write(
        root.resolve("README.md"),
        """
        <!-- snippet: A.java#one -->
        ```java
        ```
        ```java
        ```
        ```
        ```
        """);
    write(root.resolve("docs/page.md"), "```java\n```\n");
    assertThat(new Documentation(root).javaWithoutSource())
        .containsExactly("README.md:4", "docs/page.md:1");
  }

  private static void write(Path file, String text) throws IOException {
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
  }
}
