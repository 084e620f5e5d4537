<?php

declare(strict_types=1);

namespace Aircraft;

enum Change: string
{
    case Added = 'added';
    case Updated = 'updated';
    case Deleted = 'deleted';
}
