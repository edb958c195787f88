package dev.lily.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A table of the documentation that a test makes, below a line {@code <!-- memory: NAME -->}.
 * {@code -Dlily.docs.write=true} has it written instead of compared.
 */
public final class DocumentedTable {
  private DocumentedTable() {}

  /**
   * Fails unless the page has the table.
   *
   * @param page below {@code docs/}
   */
  public static void check(String page, String name, List<String> lines) throws IOException {
    Path path =
        Path.of(System.getProperty("basedir", ""))
            .toAbsolutePath()
            .resolveSibling("docs")
            .resolve(page);
    List<String> text = new ArrayList<>(Files.readAllLines(path));
    int first = text.indexOf("<!-- memory: " + name + " -->") + 1;
    assertThat(first).as("the line below the marker of table '%s' in %s", name, path).isPositive();
    int end = first;
    while (end < text.size() && text.get(end).startsWith("|")) {
      end++;
    }
    List<String> written = text.subList(first, end);
    if (Boolean.getBoolean("lily.docs.write")) {
      written.clear();
      written.addAll(lines);
      Files.write(path, text);
      return;
    }
    assertThat(String.join("\n", written))
        .as("table '%s' of %s; -Dlily.docs.write=true writes what is below", name, path)
        .isEqualTo(String.join("\n", lines));
  }
}
