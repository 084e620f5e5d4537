<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

/** A type whose values may be lists. In an array of it, a list is an element, not another dimension. */
interface TakesLists extends Type {}
