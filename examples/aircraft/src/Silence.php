<?php

declare(strict_types=1);

namespace Aircraft;

/** Tells nobody: for an installation where nobody follows. */
final readonly class Silence implements Announcements
{
    public function announce(Change $change, Number $number): void {}
}
