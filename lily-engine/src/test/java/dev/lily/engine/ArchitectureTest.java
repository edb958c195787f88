package dev.lily.engine;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import org.jspecify.annotations.NullMarked;

/** Who may depend on whom inside the engine; {@code docs/architecture.md} draws it. */
@AnalyzeClasses(packages = "dev.lily.engine", importOptions = DoNotIncludeTests.class)
class ArchitectureTest {
  private static final String ENGINE = "dev.lily.engine";

  @ArchTest
  static final ArchRule layersPointDownwards =
      layeredArchitecture()
          .consideringOnlyDependenciesInLayers()
          .layer("root")
          .definedBy(ENGINE, ENGINE + ".bench..")
          .layer("generation")
          .definedBy(ENGINE + ".generation..")
          .layer("graph")
          .definedBy(ENGINE + ".model.qwen35moe..")
          .layer("model")
          .definedBy(ENGINE + ".model")
          .layer("cpu")
          .definedBy(ENGINE + ".backend.cpu..")
          .layer("backend")
          .definedBy(ENGINE + ".backend")
          .layer("chat")
          .definedBy(ENGINE + ".chat..")
          .layer("tokenizer")
          .definedBy(ENGINE + ".tokenizer..")
          .layer("constraint")
          .definedBy(ENGINE + ".constraint..")
          .layer("sampling")
          .definedBy(ENGINE + ".sampling..")
          .layer("checkpoint")
          .definedBy(ENGINE + ".checkpoint..")
          .whereLayer("root")
          .mayNotBeAccessedByAnyLayer()
          .whereLayer("generation")
          .mayOnlyBeAccessedByLayers("root")
          .whereLayer("graph")
          .mayOnlyBeAccessedByLayers("root")
          .whereLayer("model")
          .mayOnlyBeAccessedByLayers("root", "generation", "graph")
          .whereLayer("cpu")
          .mayNotBeAccessedByAnyLayer()
          .whereLayer("backend")
          .mayOnlyBeAccessedByLayers("root", "generation", "graph", "model", "cpu")
          .whereLayer("chat")
          .mayOnlyBeAccessedByLayers("root", "generation")
          .whereLayer("tokenizer")
          .mayOnlyBeAccessedByLayers("root", "generation")
          .whereLayer("constraint")
          .mayOnlyBeAccessedByLayers("root", "generation")
          .whereLayer("sampling")
          .mayOnlyBeAccessedByLayers("root", "generation", "model", "graph", "backend", "cpu")
          .whereLayer("checkpoint")
          .mayOnlyBeAccessedByLayers("root", "graph");

  @ArchTest
  static final ArchRule packagesAreFreeOfCycles =
      slices().matching(ENGINE + ".(**)").should().beFreeOfCycles();

  @ArchTest
  static final ArchRule onlyVectorKernelsTouchTheIncubator =
      noClasses()
          .that()
          .resideOutsideOfPackage(ENGINE + ".backend.cpu.vector..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("jdk.incubator.vector..");

  @ArchTest
  static final ArchRule theEngineKnowsNoFramework =
      noClasses()
          .should()
          .dependOnClassesThat(
              resideInAnyPackage(
                  "org.springframework..",
                  "reactor..",
                  "io.micrometer..",
                  "dev.lily.metal..",
                  "dev.lily.spring.."));

  @ArchTest
  static final ArchRule everyPackageIsNullMarked =
      classes().that().haveSimpleName("package-info").should().beAnnotatedWith(NullMarked.class);

  @ArchTest
  static final ArchRule nothingLinksNativeCode =
      noClasses().should().dependOnClassesThat().haveFullyQualifiedName("java.lang.foreign.Linker");
}
