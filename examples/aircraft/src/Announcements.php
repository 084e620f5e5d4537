<?php

declare(strict_types=1);

namespace Aircraft;

/** Tells whoever listens that something has changed: all processes and other applications, by the database. */
interface Announcements
{
    public const CHANNEL = 'aircraft';

    /** What can't be told is lost: a page that shows aircraft asks for them anew from time to time. */
    public function announce(Change $change, Number $number): void;
}
