<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

/** Compares an option of `spindle run` with the same option of GNU parallel or xargs. */
enum Meaning: string
{
    case Same = 'same';

    /** `spindle run` has the option, but with a difference. The note of the option describes this difference. */
    case Other = 'other';

    /** The option is accepted and has no effect, because `spindle run` always does what the option asks for. */
    case Ignored = 'the default';

    case Refused = 'refused';

    /** Only `spindle run` has the option. */
    case Own = 'own';
}
