<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\KnownOptions;

/** The meaning of an option of another tool for `spindle run`. */
enum Meaning: string
{
    case Same = 'same';

    /** The option exists in both, with a difference that is documented. */
    case Other = 'other';

    /** The option is accepted for scripts, because its effect is that of the default. */
    case Ignored = 'the default';

    case Refused = 'refused';

    /** Only `spindle run` has the option. */
    case Own = 'own';
}
