<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

/** A type whose values can be lists. In an array of such a type, a list is an element, not a dimension of the array. */
interface ListValuedType extends Type {}
