<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Server;

use Spindle\Http\Internal\Form\FileDescriptors;

final class OneDescriptor implements FileDescriptors
{
    public function maxFiles(): int
    {
        return 1;
    }

    public function handleTooManyFiles(): void {}
}
