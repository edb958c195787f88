package dev.lily.sample;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The Markdown files of a repository and what is wrong with them: relative links that lead nowhere,
 * snippets that differ from their source, and Java that has none.
 *
 * <p>A snippet is a fenced block right after a line {@code <!-- snippet: path#tag -->}. It has to
 * equal what stands between {@code tag::tag[]} and {@code end::tag[]} in that file, without common
 * indentation, and without blank lines around it.
 */
final class Documentation {

  private static final Pattern FENCE = Pattern.compile("\\s*(```+|~~~+)(.*)");
  private static final Pattern CODE_SPAN = Pattern.compile("(`+)(?!`).*?(?<!`)\\1(?!`)");
  private static final Pattern LINK =
      Pattern.compile(
          "\\]\\(<?([^)<>\\s]+)>?(?:\\s+\"[^\"]*\")?\\)|^\\[[^\\]]+\\]:\\s+(\\S+)|(?:href|src|srcset)=\"([^\"\\s]+)");
  private static final Pattern HEADING = Pattern.compile("#{1,6}\\s+(.*?)\\s*#*\\s*");
  private static final Pattern EXTERNAL = Pattern.compile("[a-zA-Z][a-zA-Z0-9+.-]*:.*");
  private static final Pattern SNIPPET =
      Pattern.compile("<!--\\s*snippet:\\s*([^#\\s]+)#([\\w-]+)\\s*-->");
  private static final Pattern TAG = Pattern.compile("\\s*(//|#)\\s*(tag|end)::[\\w-]+\\[]\\s*");

  private final Path root;
  private final List<Path> pages;
  private final Map<Path, Set<String>> anchors = new HashMap<>();

  /** Reads {@code README.md} and everything below {@code docs}. */
  Documentation(Path root) {
    this.root = root.toAbsolutePath().normalize();
    try (Stream<Path> docs = Files.walk(this.root.resolve("docs"))) {
      pages =
          Stream.concat(Stream.of(this.root.resolve("README.md")), docs)
              .filter(file -> file.toString().endsWith(".md") && Files.isRegularFile(file))
              .sorted()
              .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  List<Path> pages() {
    return pages;
  }

  /** Relative links without a target, as {@code page:line: reason}. */
  List<String> brokenLinks() {
    List<String> problems = new ArrayList<>();
    for (Path page : pages) {
      List<String> lines = withoutCode(lines(page));
      for (int i = 0; i < lines.size(); i++) {
        for (String target : links(lines.get(i))) {
          String reason = problem(page, target);
          if (!reason.isEmpty()) {
            problems.add("%s:%d: %s".formatted(root.relativize(page), i + 1, reason));
          }
        }
      }
    }
    return problems;
  }

  /** Snippets that are not what their source says, as {@code page:line: reason}. */
  List<String> staleSnippets() {
    List<String> problems = new ArrayList<>();
    for (Path page : pages) {
      List<String> lines = lines(page);
      for (int i = 0; i < lines.size(); i++) {
        Matcher marker = SNIPPET.matcher(lines.get(i).strip());
        if (marker.matches()) {
          String reason = problem(lines, i + 1, marker.group(1), marker.group(2));
          if (!reason.isEmpty()) {
            problems.add("%s:%d: %s".formatted(root.relativize(page), i + 1, reason));
          }
        }
      }
    }
    return problems;
  }

  /** Blocks of Java that no compiler reads, as {@code page:line}. */
  List<String> javaWithoutSource() {
    List<String> problems = new ArrayList<>();
    for (Path page : pages) {
      List<String> lines = lines(page);
      for (int i = 0; i < lines.size(); i++) {
        if (lines.get(i).strip().equals("```java")
            && (i == 0 || !SNIPPET.matcher(lines.get(i - 1).strip()).matches())) {
          problems.add("%s:%d".formatted(root.relativize(page), i + 1));
        }
      }
    }
    return problems;
  }

  private String problem(Path page, String target) {
    if (EXTERNAL.matcher(target).matches()) {
      return "";
    }
    int hash = target.indexOf('#');
    String path = hash < 0 ? target : target.substring(0, hash);
    Path file = path.isEmpty() ? page : page.resolveSibling(path).normalize();
    if (!file.startsWith(root)) {
      return target + " leads out of the repository";
    }
    if (!Files.exists(file)) {
      return target + " does not exist";
    }
    if (hash >= 0
        && file.toString().endsWith(".md")
        && !anchors
            .computeIfAbsent(file, Documentation::anchors)
            .contains(target.substring(hash + 1))) {
      return target + ": no such heading";
    }
    return "";
  }

  private String problem(List<String> page, int fence, String path, String tag) {
    Path file = root.resolve(path).normalize();
    if (!file.startsWith(root) || !Files.isRegularFile(file)) {
      return path + " does not exist";
    }
    List<String> source = region(lines(file), tag);
    if (source.isEmpty()) {
      return "%s has no region between tag::%s[] and end::%s[]".formatted(path, tag, tag);
    }
    Matcher open = fence < page.size() ? FENCE.matcher(page.get(fence)) : FENCE.matcher("");
    if (!open.matches()) {
      return "a fenced block has to follow the snippet's comment";
    }
    int end = fence + 1;
    while (end < page.size() && !page.get(end).strip().equals(open.group(1))) {
      end++;
    }
    String written = String.join("\n", page.subList(fence + 1, end)).stripTrailing();
    String expected = String.join("\n", source);
    return written.equals(expected)
        ? ""
        : "differs from %s#%s, which says:\n%s".formatted(path, tag, expected);
  }

  private static List<String> region(List<String> source, String tag) {
    int start = lineWith(source, "tag::" + tag + "[]");
    int end = lineWith(source, "end::" + tag + "[]");
    if (start < 0 || end < start) {
      return List.of();
    }
    List<String> lines =
        source.subList(start + 1, end).stream()
            .filter(line -> !TAG.matcher(line).matches())
            .collect(Collectors.toCollection(ArrayList::new));
    while (!lines.isEmpty() && lines.getFirst().isBlank()) {
      lines.removeFirst();
    }
    while (!lines.isEmpty() && lines.getLast().isBlank()) {
      lines.removeLast();
    }
    return String.join("\n", lines).stripIndent().lines().toList();
  }

  private static int lineWith(List<String> lines, String text) {
    for (int i = 0; i < lines.size(); i++) {
      if (lines.get(i).contains(text)) {
        return i;
      }
    }
    return -1;
  }

  private static List<String> links(String line) {
    return LINK.matcher(line)
        .results()
        .map(Documentation::firstGroup)
        .filter(target -> !target.isEmpty())
        .toList();
  }

  private static String firstGroup(MatchResult match) {
    for (int group = 1; group <= match.groupCount(); group++) {
      if (match.group(group) != null) {
        return match.group(group);
      }
    }
    return "";
  }

  /** The anchors GitHub gives to a page's headings. */
  private static Set<String> anchors(Path page) {
    Set<String> anchors = new HashSet<>();
    Map<String, Integer> seen = new HashMap<>();
    for (String line : withoutFences(lines(page))) {
      Matcher heading = HEADING.matcher(line);
      if (heading.matches()) {
        String slug =
            heading
                .group(1)
                .replaceAll("\\[([^\\]]*)\\]\\([^)]*\\)", "$1")
                .toLowerCase(Locale.ROOT)
                .replaceAll("[^\\p{L}\\p{N}\\- _]", "")
                .replace(' ', '-');
        int before = seen.merge(slug, 1, Integer::sum) - 1;
        anchors.add(before == 0 ? slug : slug + "-" + before);
      }
    }
    return anchors;
  }

  private static List<String> withoutCode(List<String> lines) {
    return withoutFences(lines).stream()
        .map(line -> CODE_SPAN.matcher(line).replaceAll(""))
        .toList();
  }

  /** Lines of fenced blocks become empty, so that line numbers stay. */
  private static List<String> withoutFences(List<String> lines) {
    String[] kept = lines.toArray(String[]::new);
    String open = "";
    for (int i = 0; i < kept.length; i++) {
      Matcher fence = FENCE.matcher(kept[i]);
      if (!open.isEmpty()) {
        if (kept[i].strip().equals(open)) {
          open = "";
        }
        kept[i] = "";
      } else if (fence.matches()) {
        open = fence.group(1);
        kept[i] = "";
      }
    }
    return Arrays.asList(kept);
  }

  private static List<String> lines(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
