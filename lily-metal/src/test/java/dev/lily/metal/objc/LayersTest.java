package dev.lily.metal.objc;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;
import java.lang.foreign.Linker;

/** The two layers below the kernels. */
@AnalyzeClasses(packages = "dev.lily.metal", importOptions = DoNotIncludeTests.class)
class LayersTest {

  @ArchTest
  static final ArchRule onlyTheRuntimeLinks =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.lily.metal.objc")
          .should()
          .dependOnClassesThat()
          .areAssignableTo(Linker.class);

  @ArchTest
  static final ArchRule theRuntimeKnowsNothingAboveIt =
      noClasses()
          .that()
          .resideInAPackage("dev.lily.metal.objc")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "dev.lily.metal", "dev.lily.metal.device..", "dev.lily.metal.kernel..");

  @ArchTest
  static final ArchRule theDeviceKnowsNothingAboveIt =
      noClasses()
          .that()
          .resideInAPackage("dev.lily.metal.device")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("dev.lily.metal", "dev.lily.metal.kernel..");
}
