<?php

declare(strict_types=1);

// The autoloader asks this file for TaskRunner\TaskRunner.
class_alias(Spindle\Command\TaskRunner::class, 'TaskRunner\TaskRunner');
