<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

final class Grandchild extends Filial {}
