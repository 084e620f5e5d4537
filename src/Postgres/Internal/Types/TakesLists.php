<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

/** A type that has lists among its own values: in an array of it, a list is an element, not another dimension. */
interface TakesLists extends Type {}
