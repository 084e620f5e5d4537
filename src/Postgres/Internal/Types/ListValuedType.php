<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

/** A type whose PHP values can be lists. In an array of such values, a list is an element, not a dimension. */
interface ListValuedType extends Type {}
