<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

/** A command's output could not be kept; becomes the error of its result. */
final class CaptureFailed extends \Exception
{
}
