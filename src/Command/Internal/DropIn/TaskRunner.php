<?php

declare(strict_types=1);

// The autoloader loads this file for TaskRunner\TaskRunner.
class_alias(Spindle\Command\TaskRunner::class, 'TaskRunner\TaskRunner');
