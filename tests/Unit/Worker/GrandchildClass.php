<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

final class GrandchildClass extends ChildClass {}
