package dev.lily.spring;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

@AnalyzeClasses(packages = "dev.lily.spring", importOptions = ImportOption.DoNotIncludeTests.class)
class StarterArchitectureTest {

  @ArchTest
  static final ArchRule autoConfigurationIsKnownToNobody =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.lily.spring.autoconfigure..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("dev.lily.spring.autoconfigure..");

  @ArchTest
  static final ArchRule modelEndpointAndActuatorAreSiblings =
      slices()
          .matching("dev.lily.spring.(*)..")
          .should()
          .notDependOnEachOther()
          .ignoreDependency(
              com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage(
                  "dev.lily.spring.autoconfigure.."),
              com.tngtech.archunit.base.DescribedPredicate.alwaysTrue());

  @ArchTest
  static final ArchRule whatAllShareKnowsNoneOfThem =
      noClasses()
          .that()
          .resideInAPackage("dev.lily.spring")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("dev.lily.spring.*..");

  @ArchTest
  static final ArchRule metalIsFoundOnlyByTheServiceLoader =
      noClasses().should().dependOnClassesThat().resideInAPackage("dev.lily.metal..");

  @ArchTest
  static final ArchRule bootStaysInAutoConfigurationAndActuator =
      noClasses()
          .that()
          .resideOutsideOfPackages("dev.lily.spring.autoconfigure..", "dev.lily.spring.actuate..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("org.springframework.boot..");

  @ArchTest
  static final ArchRule theEngineIsUsedThroughItsPublicPackages =
      noClasses()
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("dev.lily.engine.model..", "dev.lily.engine.backend.cpu..");

  @ArchTest
  static final ArchRule packagesAreNullMarked =
      classes()
          .that()
          .haveSimpleName("package-info")
          .should()
          .beAnnotatedWith(org.jspecify.annotations.NullMarked.class);
}
