/**
 * What the endpoint writes, in the API's words: records whose names become snake case. A {@code
 * null} is written unless its component says otherwise, because clients tell {@code null} from
 * absent. Internal to Lily.
 */
@NullMarked
package dev.lily.spring.openai.dto;

import org.jspecify.annotations.NullMarked;
